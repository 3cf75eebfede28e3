// Package operator is the page that people look at on the admin listener: what
// the sidecar holds, how far a replay has come, what is hot, and the changes
// that an operator may make. It is static files, embedded; all figures come from
// the JSON of the same listener, all changes go to it.
//
// What is loaded, in order:
//
//	theme.js    dark or light, before anything is drawn
//	index.html  the skeleton: every heading, table and empty state
//	app.js      the loop: ask once a second, hand the answers to the views
//	api.js      requests, problem+json, the admin token
//	views       summary.js replay.js boards.js hot.js rooms.js profiles.js top.js
//	dialog.js   a change: choose it (changes.js), confirm it with the token (token.js), send it
//	dom.js, format.js   rows that are kept by key; numbers, sizes, times
//
// Member ids, nicks, room uids and errors are foreign text. They reach the page
// through textContent only; the Content-Security-Policy of [Handler] forbids
// inline script and, by Trusted Types, every way of making markup from text.
package operator
