// Command rankcache answers leaderboard reads beside an app from local memory.
package main

import "rankcache/internal/app"

func main() { app.Main(app.NewCommand()) }
