// Package compat takes changes in the older forms of docs/COMPAT.md: it translates them to
// POST /v1/scores:batch and /v1/scores, which check tokens, classes and orders as they do for
// any post, and translates the answers back.
//
//	handler.go  Handler.ServeHTTP: path to form; the request to the next handler
//	update.go   POST /compat/rank/update and delete, of a class by its ids
//	incr.go     POST /compat/incrScore, of a class or board by name
package compat
