// Command rankcache-lab shows rankcache and measures it. It links servers, load
// generators and other people's ordered sets, which no pod needs.
package main

import (
	"rankcache/internal/cli"
	"rankcache/internal/lab"
)

func main() { cli.Main(lab.NewCommand()) }
