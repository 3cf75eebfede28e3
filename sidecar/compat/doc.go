// Package compat answers reads in the older forms of docs/COMPAT.md, so that a caller of these
// can be moved over without a change of its code.
//
//	handler.go  Handler.Answer: path to request; problems
//	list.go     POST /compat/rank/list, of a class by its ids
//	scores.go   POST /compat/getScore and topScore, GET /v1/scores: of a class or board by name
//
// The data port asks it about paths that are none of its own, after its own routes have
// failed to match, so other reads cost the same with it. It reads by [sidecar.Reader], as all
// protocols do.
package compat
