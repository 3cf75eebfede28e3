// Package compat (no public API) answers requests in the older forms of docs/COMPAT.md, so
// that their callers can be moved over without a change of their code.
//
// Reads, on the data port, read as all protocols do:
//
//	reads.go   Reads.Answer: path to form; what it can't answer is for the port
//	list.go    POST /compat/rank/list, of a class by its ids
//	groups.go  of a list: the places of groups, and their own lists
//	scores.go  POST /compat/getScore and topScore, GET /v1/scores: of a class or board by name
//
// Changes, before the writer's handler, become POST /v1/scores:batch and /v1/scores, which
// check tokens, classes and orders as they do for any post; the answers are translated back:
//
//	changes.go  Changes.ServeHTTP: path to form; the request to the next handler
//	update.go   POST /compat/rank/update and delete, of a class by its ids
//	incr.go     POST /compat/incrScore, of a class or board by name, and /v1/scores with points of a user
//
// Both use fields.go (numbers that may be strings, errors and the envelope) and classes.go
// (the class that a request names).
package compat
