package main

import (
	"encoding/json"
	"html/template"
	"net/http"
)

// app shows one board.
type app struct {
	board *client
}

func newApp(rankcache, board string) (*app, error) {
	c, err := newClient(rankcache, board)
	return &app{c}, err
}

func (a *app) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", a.page)
	mux.HandleFunc("GET /board.json", a.json)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {})
	return mux
}

// json passes the sidecar's answer on, an error as well: it has the reason.
func (a *app) json(w http.ResponseWriter, r *http.Request) {
	answer, err := a.board.top(r.Context(), r.URL.Query().Get("me"))
	if err != nil {
		http.Error(w, "no answer from rankcache", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", answer.contentType)
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body) // the caller may have gone
}

// view is the data of the page.
type view struct {
	page
	AgeMs, Error string
}

// page is the part of the sidecar's answer that is shown.
type page struct {
	Board, Source string
	Total         int
	Entries       []row
	Me            *row
}

type row struct {
	Rank   int
	Member string
	Score  json.Number // as it came, so that a million is not 1e+06
}

func (a *app) page(w http.ResponseWriter, r *http.Request) {
	v, status := a.view(r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, v) // the caller may have gone
}

// view asks for the board. A board that can't be had leaves the rest of the page
// as it is.
func (a *app) view(r *http.Request) (view, int) {
	answer, err := a.board.top(r.Context(), r.URL.Query().Get("me"))
	v := view{page: page{Board: a.board.id}}
	switch {
	case err != nil:
		v.Error = "The board is being prepared."
		return v, http.StatusBadGateway
	case answer.status != http.StatusOK:
		v.Error = "There is no board here at the moment."
		return v, answer.status
	}
	if err := json.Unmarshal(answer.body, &v.page); err != nil {
		v.Error = "The board can't be read."
		return v, http.StatusBadGateway
	}
	v.AgeMs = answer.age
	return v, http.StatusOK
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2">
<title>Board {{.Board}}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 30rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark }
table { width: 100%; border-collapse: collapse }
td { padding: .2rem .5rem; border-bottom: 1px solid #8884 }
td:first-child, td:last-child { text-align: right; font-variant-numeric: tabular-nums }
</style>
<h1>Board {{.Board}}</h1>
{{if .Error}}<p>{{.Error}}</p>{{else}}
<table>{{range .Entries}}<tr><td>{{.Rank}}<td>{{.Member}}<td>{{.Score}}{{end}}</table>
{{with .Me}}<p>You are number {{.Rank}} with {{.Score}} points.</p>{{end}}
<p><small>{{.Total}} members, from {{.Source}}{{with .AgeMs}}, {{.}} ms old{{end}}</small></p>
{{end}}</html>
`))
