// Package hotkey finds the boards that are hot by their traffic and keeps their
// top pages in local memory.
//
// The path of a request: [Tracker.Count] adds one to the board's counter
// (counters.go), whoever will answer it; [Tracker.Top] hands out the board's
// page when the board is promoted and its page is fresh enough (page.go). Both
// take no lock and allocate nothing.
//
// The path of a promotion: once a second [Tracker.Run] closes the counters'
// second and takes what the sources say, each a [Source] in a file of its own:
// self (own counters), static (boards pinned by the operator) and, through the
// fleet's verdict, a server-side one (tencent, redis). The policy (policy.go)
// promotes and demotes; the refresher (refresh.go) reads the pages of promoted
// boards ahead of their readers, boards due together in one pipeline.
//
// The path of a verdict: a cloud API allows a few calls a second per account,
// so of all [Poller] instances the one that holds a lease in Redis (lease.go)
// asks the server-side source and publishes a [Verdict] (verdict.go), which each
// sidecar's [Follower] reads once a second.
//
// Nothing here decides readiness: without Redis, without the cloud API and
// without a verdict the own counters still promote, and a page that can't be
// refreshed falls through to Redis.
package hotkey
