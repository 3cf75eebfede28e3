package sidecar

import "net/http"

// CheckOrigin refuses requests that change something and that a browser sends
// for another site's page, by Sec-Fetch-Site or Origin. Together with
// [CheckHost], which a rebound DNS name does not pass, it keeps foreign pages
// from acting through an operator's browser. Clients that are no browsers send
// neither header and pass.
func CheckOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, &problem{code: CodeCrossOrigin, detail: "changes are taken from this listener's own pages and from clients that are no browsers"})
	}))
	return guard.Handler(next)
}
