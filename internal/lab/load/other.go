//go:build !linux

package load

import (
	"errors"
	"time"
)

// CPU needs Linux.
func CPU([]int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// Cores needs Linux.
func Cores() ([]int, error) { return nil, errors.ErrUnsupported }

// Pin needs Linux.
func Pin(int, ...int) error { return errors.ErrUnsupported }

// Streams need Linux.
type Streams struct{}

// OpenStreams needs Linux.
func OpenStreams(string, [][]byte) (*Streams, error) { return nil, errors.ErrUnsupported }

// Len needs Linux.
func (*Streams) Len() int { return 0 }

// Read needs Linux.
func (*Streams) Read(func(int, []byte)) error { return errors.ErrUnsupported }

// Stop needs Linux.
func (*Streams) Stop() {}
