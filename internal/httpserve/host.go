package httpserve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// OnLoopback reports whether only this machine reaches the listener by IP. A Unix socket is none of these.
func OnLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// OnlyLocal reports whether only this machine reaches a listener's "ip:port" or path of a socket.
func OnlyLocal(addr string) bool {
	ip, err := netip.ParseAddrPort(addr)
	return err != nil || ip.Addr().IsLoopback()
}

// CheckLocal answers 403 to other machines, and does what [CheckHost] does, for a part of a listener of the network.
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

// HostAllowed reports whether a Host header names localhost, a loopback address or one of names, with any port.
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

// CheckHost answers 421 to requests whose Host is neither a loopback name nor one of names, before next sees them.
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

// CheckOrigin refuses changes that a browser sends for another site's page, by Sec-Fetch-Site or Origin. With
// [CheckHost] it keeps foreign pages from acting through a browser. Other clients send neither and pass.
func CheckOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Problem{Status: http.StatusForbidden, Code: "cross_origin", Title: "Request of another site",
			Detail: "changes are taken from this listener's own pages and from clients that are no browsers"}.Write(w)
	}))
	return guard.Handler(next)
}

// RequireToken passes requests with "Authorization: Bearer token"; an empty token none. what names it in refusals.
func RequireToken(what, token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !HasToken(r, token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			Problem{Status: http.StatusUnauthorized, Code: "token_required", Title: "Token required",
				Detail: "want " + what + " as Authorization: Bearer"}.Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// HasToken reports whether a request has the token as RequireToken wants it, in the same time whatever it has instead.
// No request has the empty one.
func HasToken(r *http.Request, token string) bool {
	got := sha256.Sum256([]byte(bearer(r.Header.Get("Authorization"))))
	want := sha256.Sum256([]byte(token)) // equal lengths compare in constant time
	return token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func bearer(field string) string {
	scheme, token, _ := strings.Cut(field, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}
