// Package hotkey (no public API) finds the boards that are hot by their traffic and keeps their
// top pages in local memory. The entry function is [Tracker.Read].
//
// The path of a request: [Tracker.Count] adds one to the board's counter (counters.go), whichever tier answers;
// [Tracker.Read] answers from the board's page if the board is promoted and its page is fresh enough (pages.go). Both
// take no lock and allocate nothing, but for the first request of a board in a long time.
//
// The path of a promotion (tracker.go): once a second [Tracker.Run] rolls the counters and gives the policy (policy.go,
// candidate.go) the busy boards, those that the operator has pinned and those of the fleet's verdict. The policy
// promotes and demotes; the refresher (pages.go) reads the pages of promoted boards before they are requested, boards
// due together in one pipeline.
//
// The path of a verdict: a cloud API allows a few calls a second per account, so of all [Poller] instances the one that
// has a lease in Redis (poller.go) calls the [Source] (tencent.go and its files, redis_hotkeys.go, reports.go) and
// publishes a [Verdict] (verdict.go), which each sidecar's [VerdictReader] reads once a second. While the source is
// what the sidecars count themselves ([Fleet]), they report it in the same round trip.
//
// Nothing here decides readiness: without Redis, without the cloud API and without a verdict the own counters still
// promote, and reads of boards whose page can't be refreshed go to Redis.
//
// # Words
//
//	listed    named by a verdict that is not too old
//	lease     the right to poll, which one poller of the fleet has at a time
package hotkey
