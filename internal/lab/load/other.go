//go:build !linux

package load

import (
	"context"
	"errors"
	"time"
)

// Run needs Linux.
func Run(context.Context, Config) (*Result, error) { return nil, errors.ErrUnsupported }

// CPU needs Linux.
func CPU([]int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// Cores needs Linux.
func Cores() ([]int, error) { return nil, errors.ErrUnsupported }

// Pin needs Linux.
func Pin(int, ...int) error { return errors.ErrUnsupported }
