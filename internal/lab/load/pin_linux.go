package load

import (
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Cores returns the cores that this thread may run on.
func Cores() (cores []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("which cores may be used: %w", err)
	}
	for core := range len(set) * strconv.IntSize {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores, nil
}

// Pin ties every thread of a process, and those that it makes later, to some
// cores.
func Pin(pid int, cores ...int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	pinned := map[string]bool{}
	for more := true; more; { // a thread that was made meanwhile has its maker's old cores
		tasks, err := tasksOf(pid)
		if err != nil {
			return err
		}
		more = false
		for _, task := range tasks {
			if pinned[task] {
				continue
			}
			more, pinned[task] = true, true
			if err := pinTask(task, &set); err != nil {
				return fmt.Errorf("tie process %d to the cores %v: %w", pid, cores, err)
			}
		}
	}
	return nil
}

func pinTask(task string, set *unix.CPUSet) error {
	tid, err := strconv.Atoi(filepath.Base(task))
	if err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(tid, set); err != unix.ESRCH { // it has just ended
		return err
	}
	return nil
}
