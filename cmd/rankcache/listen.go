package main

import (
	"fmt"
	"net"

	"rankcache/internal/httpserve"
)

// flagAddr is an address and the flag that names it. An empty address is none.
type flagAddr struct{ flag, addr string }

// listener is an open listener and the flag that asked for it.
type listener struct {
	net.Listener
	flag string
}

// listeners are what one process listens on.
type listeners []listener

// openListeners opens all or none.
func openListeners(addrs ...flagAddr) (opened listeners, err error) {
	for _, a := range addrs {
		if a.addr == "" {
			continue
		}
		ln, err := httpserve.Listen(a.addr)
		if err != nil {
			opened.close()
			return nil, fmt.Errorf("--%s: %w (is another rankcache running?)", a.flag, err)
		}
		opened = append(opened, listener{ln, a.flag})
	}
	return opened, nil
}

// addr returns where the listener of a flag listens, "" if there is none.
func (ls listeners) addr(flag string) string {
	for _, l := range ls {
		if l.flag == flag {
			return l.Addr().String()
		}
	}
	return ""
}

func (ls listeners) close() {
	for _, l := range ls {
		l.Close()
	}
}

// unixAddr returns the address of a socket file, "" for none.
func unixAddr(file string) string {
	if file == "" {
		return ""
	}
	return "unix:" + file
}
