package rewind

import "time"

// Master names a master of Redis. It is the same name after a failover.
type Master string

// Era is the name of a server's present history (master_replid), "" if it is not known.
type Era string

// Position is how far a master is in a partition.
type Position struct {
	Topic  string // id of the topic; another one if it was made again
	Next   int64  // everything before was applied or refused
	Healed Era    // the latest era in which all that was lost before is applied and published again
}

// Has reports whether a master in an era has all of a topic before an offset, and nothing lost is missing.
func (p Position) Has(topic string, before int64, now Era) bool {
	return p.Topic == topic && p.Next >= before && p.Healed == now
}

// Hash is a master's hash of positions. The script that reads it makes one if there is none.
type Hash struct {
	Life       string // made at random with the hash
	Damaged    bool   // the mark of [MarkDamaged] is there
	Of         map[int32]Position
	Renamed    bool // the positions are not, or not all, in the hash: they were under another name
	WasDamaged bool // the mark was under another name
}

// History names what a master has: as long as both are the same, nothing was lost.
type History struct {
	Era  Era
	Life string // of its hash of positions
}

// Log is what Kafka tells of a partition. The offsets of a time are of the first record not older, or End.
type Log struct {
	Topic        string
	Start, End   int64
	LifeBack     int64 // of the time one order life ago
	HalfLifeBack int64 // of the time half an order life ago
	Committed    int64 // of the writers' group, negative if there is none
	Noted        bool  // the group has noted that masters have positions of it
}

// Event is what a [Machine] is told. One of an earlier round changes nothing.
type Event interface{ event() }

// Events.
type (
	// Assigned tells all partitions that the writer is to read from now on.
	Assigned struct{ Partitions []int32 }
	// ErasRead answers [ReadEras]: all masters, and every script is loaded on each of them.
	ErasRead struct {
		Round uint64
		Eras  map[Master]Era
	}
	// PositionsRead answers [ReadPositions]; of a master in another era [Fenced] does.
	PositionsRead struct {
		Round uint64
		Of    map[Master]Hash
		Lives map[Master]string // of the former hashes, "" for one that is gone
	}
	// LogRead answers [ReadLog], with all partitions of the topic: what a master lacks is the same for each writer.
	LogRead struct {
		Round    uint64
		Of       map[int32]Log
		Rebuilds bool // somebody has boards that are not in the log: damaged masters are marked
	}
	// Marked answers [MarkDamaged].
	Marked struct {
		MarkDamaged
		Answer Answer
	}
	// Failed tells that one of the three could not be read. It is tried again at a tick.
	Failed struct{ Round uint64 }
	// Cut tells that the log has no longer what is to be read next: it was cut, or made again.
	Cut struct{ Round uint64 }
	// Done tells that all of a partition before Next was answered by all its masters, and is published.
	Done struct {
		Round     uint64
		Partition int32
		Next      int64
	}
	// Fenced tells that a master has refused a call because its era is another one, or that it does not know a script.
	Fenced struct {
		Round  uint64
		Master Master
	}
	// Written answers [WritePosition].
	Written struct {
		WritePosition
		Answer Answer
	}
	// Tick comes once a second with what masters tell: else nothing tells of deleted keys while no command comes.
	Tick struct {
		Asked time.Time
		Seen  map[Master]History
	}
	// Drain has positions written at once, before the writer ends.
	Drain struct{}
)

// Answer is what the script that writes a position has answered.
type Answer uint8

// Answers.
const (
	NotWritten Answer = iota // it was not reached
	Wrote
	OtherEra // the master has another era
	Gone     // the hash is not the one that was read
)

// Action is what the writer is to do. [ReadEras] begins a round: what is under way is dropped.
type Action interface{ action() }

// Actions.
type (
	// ReadEras has the era of each master read, and the scripts loaded on the same connection.
	ReadEras struct{ Round uint64 }
	// ReadPositions has the hashes read in the era, and the lives of those under masters' former names.
	ReadPositions struct {
		Round  uint64
		Eras   map[Master]Era
		Former []Master
	}
	// ReadLog has Kafka asked about the topic.
	ReadLog struct{ Round uint64 }
	// MarkDamaged has a script that answers [OtherEra] or [Gone], or marks the hash of a damaged master. Nothing
	// is applied before: whoever begins a board there asks first what it had.
	MarkDamaged struct {
		Round      uint64
		Master     Master
		Era        Era
		Life       string
		Partitions int // of the topic: the mark stays at least until all are healed
	}
	// Seek has a partition read from an offset; before Published all is published, until Target it is rewinding.
	Seek struct {
		Round             uint64
		Partition         int32
		Offset            int64
		Published, Target int64
		Noted             bool // as in [Log]
	}
	// WritePosition has a position written. [OtherEra] or [Gone] answer it, or the higher Next stays unless Reset.
	WritePosition struct {
		Round     uint64
		Master    Master
		Era       Era
		Life      string
		Partition int32
		Topic     string
		Next      int64
		Heal      bool // the era is noted as healed
		Reset     bool // the higher one is beyond the end of the log
	}
	// Healed tells that all partitions of the writer are healed on all masters.
	Healed struct{ Took time.Duration }
	// Alert tells an operator of something that is not as it should be.
	Alert struct {
		Kind      AlertKind
		Master    Master // of Damaged
		Partition int32
		Commands  int64 // of Lost: how many, 0 if that is not known; of Damaged: how many are read again
	}
)

// AlertKind is what an [Alert] tells of.
type AlertKind uint8

// Kinds of alerts.
const (
	// Lost: commands that a master may have lost, or that were never read, are not in the log any more.
	Lost AlertKind = iota + 1
	// Damaged: a master does not know how far it is, or is far behind. One order life is read again.
	Damaged
	// Alternating: eras change too often, as if two servers were taken for the same master.
	Alternating
)

func (Assigned) event()      {}
func (ErasRead) event()      {}
func (PositionsRead) event() {}
func (LogRead) event()       {}
func (Failed) event()        {}
func (Marked) event()        {}
func (Cut) event()           {}
func (Done) event()          {}
func (Fenced) event()        {}
func (Written) event()       {}
func (Tick) event()          {}
func (Drain) event()         {}

func (ReadEras) action()      {}
func (ReadPositions) action() {}
func (ReadLog) action()       {}
func (MarkDamaged) action()   {}
func (Seek) action()          {}
func (WritePosition) action() {}
func (Healed) action()        {}
func (Alert) action()         {}
