package httpserve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// OnLoopback reports whether only this machine reaches the listener by IP. A Unix
// socket is reached by no browser, so it is none of these.
func OnLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// OnlyLocal reports whether only this machine reaches an address of an open
// listener, "ip:port" or the path of a socket.
func OnlyLocal(addr string) bool {
	ip, err := netip.ParseAddrPort(addr)
	return err != nil || ip.Addr().IsLoopback()
}

// CheckLocal answers 403 to requests that come from another machine, and to the rest
// what [CheckHost] does, before next sees them. It is for a part of a listener that the
// network reaches.
func CheckLocal(next http.Handler) http.Handler {
	named := CheckHost(nil, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if !ok || !OnlyLocal(here.String()) || !OnlyLocal(r.RemoteAddr) {
			Problem{Status: http.StatusForbidden, Code: "local_only", Title: "Answered on loopback only",
				Detail: "call 127.0.0.1 from inside the pod, or through kubectl port-forward"}.Write(w)
			return
		}
		named.ServeHTTP(w, r)
	})
}

// HostAllowed reports whether a Host header names this machine: localhost, a
// loopback address or one of names, with any port.
func HostAllowed(host string, names []string) bool {
	host = withoutPort(host)
	if host == "localhost" || host == "127.0.0.1" || strings.EqualFold(host, "localhost") { // nearly always
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
		if !HostAllowed(r.Host, names) {
			Problem{Status: http.StatusMisdirectedRequest, Code: "wrong_host", Title: "Host is not served here",
				Detail: "want localhost, a loopback address or a configured name"}.Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}
