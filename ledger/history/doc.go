// Package history (no public API) answers reads of finals over HTTP: of a class, of one board, of one member. Entry:
// [Register]. The handlers are in handlers.go, arguments and cursors in query.go.
package history
