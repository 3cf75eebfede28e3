//go:build !linux

package bench

import (
	"context"
	"errors"
	"net"
)

type rawLoop struct{}

func newRawLoop([]byte) (*rawLoop, error)  { return nil, errors.New("the bare loop needs Linux") }
func (*rawLoop) close()                    {}
func (*rawLoop) add(net.Conn) error        { return nil }
func (*rawLoop) run(context.Context) error { return nil }
