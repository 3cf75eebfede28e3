package roomsync

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache/internal/metric"
)

const maxBadShown = 10 // the most invalid entries in the status

// Status is the state of the sources as operators see it.
type Status struct {
	File    FileStatus    `json:"file"`
	Dynamic DynamicStatus `json:"dynamic"`
	Found   FoundStatus   `json:"found"`
}

// FoundStatus are the boards that are kept because they match a pattern and are read.
type FoundStatus struct {
	Boards int    `json:"boards"`
	Error  string `json:"error,omitempty"` // why others are not
}

// FileStatus is the state of the rooms file.
type FileStatus struct {
	File     string    `json:"file"`
	LoadedAt time.Time `json:"loaded_at"`       // when the file in force was read
	Rooms    int       `json:"rooms"`           // rooms in force
	Classes  int       `json:"classes"`         // classes in force
	Error    string    `json:"error,omitempty"` // why the newest file is not in force
	// Resolved tells that boards and rooms were read from Redis once, or that the wait for them is over.
	Resolved bool `json:"resolved"`
}

// DynamicStatus is the state of the rooms set at run time.
type DynamicStatus struct {
	Key        string     `json:"key"`
	ReadAt     time.Time  `json:"read_at"`
	Entries    int        `json:"entries"`
	Classes    int        `json:"classes"` // those that the file wins over are not counted
	BadEntries int        `json:"bad_entries"`
	Bad        []BadEntry `json:"bad,omitempty"` // the first few
	Error      string     `json:"error,omitempty"`
}

type metrics struct {
	fileBad, superHot, dynamic, dynamicBad, sharedRead, bypassed, bypassedAll prometheus.Gauge
	redisErrors                                                               prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	set := metric.New(reg, "")
	defer set.Must()
	return metrics{
		fileBad:     set.Gauge("rooms_file_bad", "1 while the newest rooms file is refused and the last good one is in force."),
		superHot:    set.Gauge("rooms_super_hot_boards", "Boards that the rooms in force make super-hot."),
		dynamic:     set.Gauge("rooms_dynamic_entries", "Rooms and boards that are set at run time."),
		dynamicBad:  set.Gauge("rooms_dynamic_bad_entries", "Entries of the hash of rooms set at run time that are ignored because they are not valid."),
		bypassed:    set.Gauge("bypassed_boards", "Boards that an operator has Redis answer for a while, named one by one (rankcache rooms bypass)."),
		bypassedAll: set.Gauge("bypassed_all", "1 while an operator has Redis answer all boards (rankcache rooms bypass --all)."),
		sharedRead:  set.Gauge("rooms_dynamic_read_timestamp_seconds", "When the hash of rooms set at run time was last read, in Unix time; 0 before the first time."),
		redisErrors: set.Counter("rooms_redis_errors_total", "Failed reads from Redis of the rooms set at run time or of the boards that run in rooms."),
	}
}
