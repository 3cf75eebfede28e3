package doctor

import (
	"context"
	"fmt"
	"strings"
	"syscall"
)

// OtherFiles are those of a sidecar beside its listeners' connections: connections to Redis and to Kafka's
// brokers, listeners, files of snapshots and settings. It is an estimate.
const OtherFiles = 256

// Conns are connections that a process may have at once, by a name.
type Conns struct {
	Name  string
	Files int // that all of them take
}

// OpenFiles returns the check that the limit of open files of this process is enough for all
// connections that the listeners take. Go raises the soft limit to the hard one when a program
// starts, so the hard one counts.
func OpenFiles(conns []Conns) Check {
	return Check{Name: "open-files", Look: func(context.Context) Verdict {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return warnf("the limit of open files is unknown: %v", err)
		}
		return judgeOpenFiles(limit.Max, conns)
	}}
}

func judgeOpenFiles(limit uint64, conns []Conns) Verdict {
	need, of := OtherFiles, make([]string, len(conns))
	for i, c := range conns {
		need += c.Files
		of[i] = fmt.Sprintf("%d for %s", c.Files, c.Name)
	}
	parts := fmt.Sprintf("%s, %d for the rest", strings.Join(of, ", "), OtherFiles)
	if limit >= uint64(need) {
		return okf("the limit of open files is enough for the %d that all connections take (%s)", need, parts)
	}
	return warnf("the limit of open files is %d, and all connections that the listeners take need %d (%s): new ones fail at the limit, also those to Redis; set %d or more by ulimit -n, LimitNOFILE= or the container runtime's limits, or lower --live-streams",
		limit, need, parts, need)
}
