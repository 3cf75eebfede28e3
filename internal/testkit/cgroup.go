package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// MemoryCgroup makes a memory cgroup, of version 1 or 2, with a limit in bytes, and removes it at the end of the test.
// It returns its folder, or "" where none can be made, because that takes root and cgroups that may be written.
func MemoryCgroup(t testing.TB, limit int) (dir string) {
	t.Helper()
	name := Name(t)
	for _, v := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(v.root, name)
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if setLimit(filepath.Join(dir, v.file), limit) == nil {
			return dir
		}
	}
	return ""
}

// setLimit writes a file of the kernel's. It creates none: a new file would limit nothing.
func setLimit(file string, limit int) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(f, limit); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// InCgroup returns the command line that joins the cgroup and then becomes argv, which so finds its limit from the
// start. With "" it is argv.
func InCgroup(dir string, argv ...string) []string {
	if dir == "" {
		return argv
	}
	return append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, dir}, argv...)
}
