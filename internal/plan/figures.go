package plan

// The measured figures, from docs/BENCHMARKS.md and docs/speed, which a test compares: good for orders of magnitude.
const (
	// "The ordered set": heap per member above its id, of a live board of 210,000.
	memberBytes = 71
	// "Hot keys and profiles": memory of the counters.
	counterBytes = 1.2e6
	// "Rows": top 50 super-hot over TCP, CPU and requests/s, idle and beside 50,000 updates/s.
	readSeconds    = 6.5e-6
	readsPerSecond = 140_300
	// There, too: a member's standing and neighbours, from memory.
	ownSeconds, aroundSeconds = 7.5e-6, 8.5e-6
	updatingPerSecond         = 135_100
	// "Rows": redis zrevrange50 over TCP, calls/s of one core and CPU of a call.
	redisPerSecond = 59_300
	redisSeconds   = 16.1e-6
	// "Reads": Redis's CPU for an own rank, as a share of that for a page.
	redisOwnShare = 0.65
	// "Replay", one partition: decode, dedup, apply, order and the client.
	ReplayPerSecond = 613_000
	// "Start": time to an open board, comparison included.
	openSeconds = 0.19
	// "The writer": CPU per command in Redis and in the writer.
	CommandRedisSeconds, commandWriterSeconds = 21e-6, 18e-6
	// speed/WRITER.md: a bare ZINCRBY, which apps send without a writer.
	bareRedisSeconds = 2.5e-6
	// "Live pages, Connect and gRPC": CPU of the sidecar for an event.
	eventSeconds = 11e-6
	// There, too: heap and stacks of a stream over HTTP/1.1, ten of a key, and over HTTP/2.
	streamBytes, http2StreamBytes = 37_600, 18_700
	// "The ledger": bytes of PostgreSQL for a change, more than those of MariaDB.
	rowBytes = 454

	// "A fleet at rest": CPU of Redis for a round trip, where there are a thousand a second, many more, and few.
	tripSeconds, busyTripSeconds, rareTripSeconds = 38e-6, 11e-6, 110e-6
	// There, too: the state of a board, a row of the walk, the keeper's value of 100 boards, a report, and reading it.
	StateSeconds, RowSeconds    = 1.0e-6, 0.7e-6
	ValueSeconds, ReportSeconds = 0.6e-6, 1.1e-6 // a value of 100 boards
	ReadReportSeconds           = 0.15e-6
	// There, too: bytes of a topic in a fetch and its answer, and of one that is looked up; fetches for an update of
	// many topics, and the most a second.
	FetchTopicBytes, lookUpTopicBytes = 110, 113
	fetchesAnUpdate, fetchesPerSecond = 0.63, 315

	// There, too, at rest: CPU of a sidecar and of each topic, in cores; private memory likewise.
	restCores, restTopicCores = 20e-3, 100e-6
	restMiB, restTopicMiB     = 13.5, 0.08
	// There, too: a row that is loaded.
	ScanSeconds = 1.0e-6

	// speed/FLEET.md, "The log in Redis": adding a change, and reading it, which a sidecar does so often a second at most.
	logAddSeconds, logReadSeconds, logReadsPerSecond = 3.9e-6, 20e-6, 80
	// speed/WRITER.md: an order id.
	orderBytes = 108

	// updateSeconds is the CPU of one live update, from the reads that a core loses to 50,000 of them a second.
	updateSeconds = (1 - updatingPerSecond/float64(readsPerSecond)) / 50e3
)

// Figures that are not in the docs.
const (
	// How serve divides the limit, and reserves for a board: as admission and internal/serve, which a test compares.
	boardBytes, reservedBytes          = 128 << 10, 85
	boardFillBytes, memberFillBytes    = 64 << 10, 40
	outsideBytes, ownHeapBytes         = 55 << 20, 12 << 20
	kernelShare, heapShare, askedShare = 0.05, 0.75, 0.6
	// A record in Kafka's log has 12 bytes beside key and value: lengths, offset, time.
	recordBytes = 12
	// A member of a snapshot: score and length of the id.
	snapshotBytes = 9
	fetchWait     = 0.5 // how long a fetch waits for something new, in seconds
)
