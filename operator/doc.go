// Package operator (no public API) is the web page on the admin listener: the boards of the sidecar, the progress of
// replays, hot boards, the services that it calls, and the changes that an operator can make. It is static files,
// embedded; all figures come from the JSON of the same listener, all changes go to it.
//
// What is loaded, in order:
//
//	theme.js    dark or light, before anything is drawn
//	index.html  the skeleton: every heading, table and empty state
//	app.js      the loop: poll once a second, hand the answers to the views
//	api.js      requests, problem+json, the admin token
//	views       summary.js lamps.js replay.js boards.js hot.js rooms.js profiles.js top.js
//	dialog.js   a change: choose it (changes.js), confirm it with the token (token.js), send it
//	dom.js, format.js   rows that are kept by key; numbers, sizes, times
//
// Member ids, nicks, room uids and errors are foreign text. They reach the page
// through textContent only; the Content-Security-Policy of [Handler] forbids
// inline script and, by Trusted Types, every way of making markup from text.
//
// Entry: [Handler].
//
// Words: a view draws one block from the polled answers; a lamp is the state of a
// service that the sidecar calls; a change is a POST or DELETE with the admin token.
package operator
