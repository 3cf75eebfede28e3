package sidecar

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// onLoopback reports whether only this machine reaches the listener by IP. A
// Unix socket is reached by no browser, so nothing is checked there.
func onLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// OnLoopback reports whether only this machine reaches an address of an open
// listener, "ip:port" or the path of a socket.
func OnLoopback(addr string) bool {
	ip, err := netip.ParseAddrPort(addr)
	return err != nil || ip.Addr().IsLoopback()
}

// hostAllowed reports whether a Host header names this machine: localhost, a
// loopback address or one of names, with any port.
func hostAllowed(host string, names []string) bool {
	host = withoutPort(host)
	if host == "127.0.0.1" || strings.EqualFold(host, "localhost") { // nearly always
		return true
	}
	for _, name := range names {
		if strings.EqualFold(host, name) {
			return true
		}
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.IsLoopback()
}

// withoutPort returns the host of "host", "host:port", "[v6]" or "[v6]:port".
func withoutPort(host string) string {
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 || end+1 < len(host) && host[end+1] != ':' {
			return ""
		}
		return host[1:end]
	}
	if i := strings.IndexByte(host, ':'); i >= 0 {
		return host[:i]
	}
	return host
}

// CheckHost answers 421 to requests whose Host is neither a loopback name nor
// one of names, before next sees them.
func CheckHost(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostAllowed(r.Host, names) {
			writeProblem(w, &problem{code: CodeWrongHost, detail: "want localhost, a loopback address or a configured name"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// WriteProblem answers an error as application/problem+json, for handlers that
// others add to the admin listener. code is one of the codes of this package;
// argument is for [CodeBadArgument] and may be empty.
func WriteProblem(w http.ResponseWriter, code Code, argument, detail string) {
	writeProblem(w, &problem{code: code, argument: argument, detail: detail})
}

// writeProblem answers p.
func writeProblem(w http.ResponseWriter, p *problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	status := codeTable[p.code.index()].status
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_, _ = w.Write(p.append(nil)) // a caller that left is none of our business
}
