package plan

// The figures that a plan is made from. All were measured on one core of a
// shared virtual machine and are in docs/BENCHMARKS.md, in the section named; a
// machine of yours differs, so a plan is good for orders of magnitude.
const (
	// "The ordered set", heap per member above its id, at 210,000 members.
	memberBytes = 67
	// "Hot keys and profiles", the counters.
	counterBytes = 0.9e6
	// A process with nothing to do takes 38 MiB (VmRSS of "rankcache serve" without
	// boards); with librdkafka's queue of 16 MiB, buffers and threads, rounded up.
	idleBytes = 64 << 20
	// Go collects when the heap has doubled (GOGC 100).
	heapFactor = 2

	// "Reads", rankcache top50 super-hot and hot over TCP, CPU per request.
	readSeconds = 8.2e-6
	// "Replay", one partition: decode, dedup, apply, order and the client.
	replayPerSecond = 610e3
	// "Reads", top50 with 50,000 updates/s beside it: (1 - 101,800/117,800) of a
	// core for 50,000 updates.
	updateSeconds = 0.136 / 50e3
	// "assign() or subscribe()": the least time to an open board, gate included.
	openSeconds = 0.2

	// "Reads", redis zrevrange50 over TCP: what one core of Redis answers, and
	// the CPU of one such call.
	redisPerSecond = 45.3e3
	redisSeconds   = 21.4e-6
	// "Writer", CPU per command in Redis and in the writer.
	commandRedisSeconds, commandWriterSeconds = 21e-6, 18e-6

	// A record in Kafka's log around key and value: lengths, offset, time stamp.
	recordBytes = 12
)

// Calls that each sidecar makes of Redis by itself, in round trips a second:
// totals of the open boards 1, rooms and their boards 1, the fleet's verdict 1.
const ownCalls = 3
