package serve

import (
	"os"
	"runtime"
)

// processors returns how many goroutines run at the same time, and makes that 2 where Go chooses 1, as for a cpuset or
// a machine of one CPU, unless the environment sets it: whoever computes, as when a large board opens, would keep
// answers waiting for seconds. It ends Go's following of the quota, which has no more to give.
func processors() int {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
	return runtime.GOMAXPROCS(0)
}
