package httpserve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// CheckOrigin refuses requests that change something and that a browser sends
// for another site's page, by Sec-Fetch-Site or Origin. Together with
// [CheckHost], which a rebound DNS name does not pass, it keeps foreign pages
// from acting through a browser that reaches this listener. Clients
// that are no browsers send neither header and pass.
func CheckOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		Problem{Status: http.StatusForbidden, Code: "cross_origin", Title: "Request of another site",
			Detail: "changes are taken from this listener's own pages and from clients that are no browsers"}.Write(w)
	}))
	return guard.Handler(next)
}

// RequireToken lets a request pass to next only with "Authorization: Bearer
// token", the scheme in any case. With an empty token nothing passes. what names
// the token in the refusal.
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

// bearer returns the token of an Authorization field, "" if it has none.
// HasToken reports whether a request has the token as RequireToken wants it. It takes the
// same time whatever the request has instead. No request has the empty one.
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
