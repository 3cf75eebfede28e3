// Package places finds where the id of a member is kept, and changes nothing.
//
//	places.go   the list of places: keys of Redis, topics, columns of the ledger, and what is not looked at
//	finder.go   Finder.Find: what was found, place by place
//	redis.go    each key of Redis
//	sql.go      each table of the ledger
//	topics.go   the newest records of the topics
//
// What is part of a text, such as the members of an update or the dimensions of a board, counts wherever the id occurs:
// a short id is part of others, so a count is at least what is there, and never less.
package places
