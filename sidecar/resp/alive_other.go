//go:build !unix

package resp

import "net"

// peek knows nothing here.
func peek(net.Conn) (pending, open bool) { return false, true }
