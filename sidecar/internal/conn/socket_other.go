//go:build !linux || !(amd64 || arm64)

package conn

import (
	"errors"
	"net"
)

type socket struct{} // never open here: connections are read and written through net

func (*socket) open(net.Conn) {}

func (*socket) isOpen() bool { return false }

func (*socket) read([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (*socket) write(_, _ []byte) (int, error) { return 0, errors.ErrUnsupported }
