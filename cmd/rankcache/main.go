// Command rankcache answers leaderboard reads beside an app from local memory.
package main

import (
	"rankcache/internal/app"
	"rankcache/internal/cli"
)

func main() { cli.Main(app.NewCommand()) }
