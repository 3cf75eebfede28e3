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
		return 0, fmt.Errorf("schedstat of %s says %q", task, text)
	}
	return time.Duration(ns), nil
}
