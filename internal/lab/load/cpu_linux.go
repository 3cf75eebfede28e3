package load

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns how long the threads of some processes have run until now, user and
// system time together, to the nanosecond. Threads that have ended are not counted,
// so take differences over a while in which none ends.
func CPU(pids []int) (total time.Duration, err error) {
	for _, pid := range pids {
		tasks, err := tasksOf(pid)
		if err != nil {
			return 0, err
		}
		for _, task := range tasks {
			ran, err := runTime(task)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has just ended
				return 0, err
			}
			total += ran
		}
	}
	return total, nil
}

// tasksOf returns the folders of a process's threads.
func tasksOf(pid int) ([]string, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err == nil && len(tasks) == 0 {
		err = fmt.Errorf("process %d has no threads: has the server ended?", pid)
	}
	return tasks, err
}

// runTime reads the first number of schedstat: ns on a CPU.
func runTime(task string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(task, "schedstat"))
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	ns, err := strconv.ParseInt(string(first), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("schedstat of %s is %q", task, text)
	}
	return time.Duration(ns), nil
}

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

// Pin ties every thread of a process, and those that it makes later, to some cores.
func Pin(pid int, cores ...int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	done := map[string]bool{}
	for more := true; more; { // a thread that was made meanwhile may have what its maker had before
		tasks, err := tasksOf(pid)
		if err != nil {
			return err
		}
		more = false
		for _, task := range tasks {
			if done[task] {
				continue
			}
			more, done[task] = true, true
			thread, err := strconv.Atoi(filepath.Base(task))
			if err == nil {
				err = unix.SchedSetaffinity(thread, &set)
			}
			if err != nil && err != unix.ESRCH { // it has just ended
				return fmt.Errorf("tie process %d to the cores %v: %w", pid, cores, err)
			}
		}
	}
	return nil
}
