// Package rankcache holds the domain types of rankcache, a sidecar that answers
// leaderboard reads from local memory: board and member ids, query and answer, entries,
// standings, tops, replay progress and the errors by which callers decide. It does
// no I/O and starts no goroutine.
//
// # Folders
//
// Three packages are the ground floor; each imports only those before it:
//
//	rankcache  domain types
//	wire       commands and updates, their JSON, Redis keys and Kafka topics
//	rooms      the rooms file: which boards are hot, super-hot or blocked
//
// On it stand the peers, none of which imports another:
//
//	localboard         whole boards in memory
//	replay             Kafka to boards: consume, decode, apply, compare with Redis
//	hotkey             which boards are hot, and their refreshed tops
//	profile            member to nick and avatar: read-through cache
//	origin             reads Redis, the system of record
//	writer             commands to Redis, updates to Kafka
//	controller         closes boards at the end of their period
//	ledger             every change in a SQL database
//	sidecar            serves the app: tier, read path, HTTP
//	operator           the operators' web page
//	internal/roomsync  follows the rooms file and the rooms set at run time
//	internal/doctor    checks of a deployment
//	internal/plan      what a fleet costs
//	internal/tracing   OpenTelemetry spans
//
// The rooms of the command wire them for cmd/rankcache: internal/cli, on it internal/serve,
// internal/run and internal/operate, and over them internal/app; internal/lab holds benchmarks, demo
// and load generator for cmd/rankcache-lab. A test of this package checks these
// imports.
//
// # One read
//
// A [Query] asks for rows and members of one board; whoever can answer has
// [Reader.Read]. The tier of a board is one lookup in [rankcache/rooms.Tiers]. An open
// super-hot board and a hot board answer from immutable rows, got by one atomic load; any
// other board is read from Redis.
//
// # One update
//
// A command changes a score in Redis and gets the board's next seq there. The
// resulting [rankcache/wire.Update] travels on the board's Kafka topic; each
// sidecar decodes it, applies it to its copy and publishes a new *Top.
//
// # Glossary
//
//	board      one leaderboard, named by the Redis key of its sorted set
//	seq        count of changes applied to one board: 1, 2, 3, ...
//	order id   the caller's idempotency key of one change
//	top        an immutable page head of one board at one seq
//	standing   one member's rank and score
//	query      one question about a board; answer: everything of it, of one moment
//	source     who answers: local board, hot page, Redis or ledger
//
// Start reading at [Query].
package rankcache
