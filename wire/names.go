package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rankcache"
)

// Names builds and parses every Redis key and Kafka topic name. The zero value is not usable; start from
// [DefaultNames]. A Names is immutable after [Names.Check] and may be shared.
type Names struct {
	// Redis key patterns. <board>, <bucket>, <uid> and <instance> stand for the value. The companions of a board carry
	// its id as hash tag, so that a cluster keeps them in the board's slot. Those of an id that has a tag itself are
	// called rankcache:meta:<board> and so on.
	Board string // sorted set of a board
	// Meta has a board's run, seq and checksum ([Meta]). Orders are the hashes of its applied order ids; <bucket>
	// stands for "<set>.<number>". Adopter is the lease of the writer that adds up a board. The hashes that some boards
	// have besides are called after Companion: see [Companion].
	Meta, Orders, Adopter, Companion string
	Readopt                          string // the hash of the boards that a writer is to add up again, board to run
	Room                             string // set of the boards now running in a room
	Rooms                            string // hash of the rooms that operators set at run time
	Hot                              string // hot-key verdict shared by the sidecars of an instance
	// States begins the keys of the keepers of an instance, and of what sidecars report to them.
	States string
	// Ends is the sorted set of boards to be closed, by period's end in Unix milliseconds; before their birth.
	Ends string
	// RoomEnds is the sorted set of "<board> <uid>" by when they leave rooms' sets, in Unix milliseconds.
	RoomEnds string
	// Applied is the hash of how far a master of Redis is in the command topic; <tag> stands for one whose
	// slot the master has, <topic> for [Names.Commands].
	Applied string
	// Controller is the working controller's lease; AbsentTopics its hash of topics without board, to since when (ms).
	Controller, AbsentTopics string

	// Commands is the topic of commands; Refused that of those that are not applied; Ledger that of every applied
	// change of the boards that are kept in a ledger ([LedgerUpdate]); Finals that of the results of closed boards
	// ([Final]); UpdatePrefix starts the name of each board's update topic; ClassPrefix that of the topic that boards
	// of a class and day share.
	Commands     string
	Refused      string
	Ledger       string
	Finals       string
	UpdatePrefix string
	ClassPrefix  string
}

// PlaceKey has the place of an instance of Redis among several that know nothing of each other, as "2/3".
const PlaceKey = "rankcache:place"

// MasterWrittenKey returns the key of the time ([ParseWritten]) that keepers write on each of several masters, by which
// the age of its replicas is told: of that with the slot of a tag. It is true whoever has written it: what a server has
// behind it is no older.
func MasterWrittenKey(tag string) string { return rankcache.OwnPrefix + "written:{" + tag + "}" }

// MemberChangesKey returns the key that counts a member's changes on all boards in a minute of the clock.
func MemberChangesKey(minute, member string) string {
	return rankcache.OwnPrefix + "changes:" + minute + ":" + member
}

// DefaultNames returns the names of the wire contract.
func DefaultNames() Names {
	return Names{
		Board:        "<board>",
		Meta:         "{<board>}:meta",
		Orders:       "{<board>}:orders:<bucket>",
		Adopter:      "{<board>}:adopter",
		Companion:    "{<board>}:<companion>",
		Readopt:      "rankcache:readopt",
		Room:         "rankcache:room:<uid>:boards",
		Rooms:        "rankcache:rooms",
		Hot:          "rankcache:hot:<instance>",
		States:       "{rankcache:states:<instance>}",
		Ends:         "rankcache:ends",
		RoomEnds:     "rankcache:room-ends",
		Applied:      "rankcache:applied:{<tag>}:<topic>",
		Controller:   "rankcache:controller",
		AbsentTopics: "rankcache:topics:absent",
		Commands:     "update_rank",
		Refused:      "update_rank_refused",
		Ledger:       "rank_updates",
		Finals:       "rank_final",
		UpdatePrefix: "update_cache_",
		ClassPrefix:  "update_class_",
	}
}

// Check returns an error for the first pattern without its placeholder, or topic name that Kafka would reject.
func (n Names) Check() error {
	for _, p := range []struct{ what, pattern, must string }{
		{"board key", n.Board, "<board>"},
		{"meta key", n.Meta, "<board>"},
		{"orders key", n.Orders, "<board>"},
		{"orders key", n.Orders, "<bucket>"},
		{"adopter key", n.Adopter, "<board>"},
		{"companion key", n.Companion, "<board>"},
		{"companion key", n.Companion, "<companion>"},
		{"room key", n.Room, "<uid>"},
		{"hot key", n.Hot, "<instance>"},
		{"states key", n.States, "<instance>"},
		{"applied key", n.Applied, "{<tag>}"},
		{"applied key", n.Applied, "<topic>"},
	} {
		if strings.Count(p.pattern, p.must) != 1 {
			return fmt.Errorf("%s pattern %q: want %s in it once", p.what, p.pattern, p.must)
		}
	}
	for what, key := range map[string]string{"rooms": n.Rooms, "readopt": n.Readopt, "ends": n.Ends, "room ends": n.RoomEnds, "controller": n.Controller, "absent topics": n.AbsentTopics} {
		if key == "" || strings.Contains(key, "<") {
			return fmt.Errorf("%s key %q: want one key, without a placeholder", what, key)
		}
	}
	for _, topic := range []string{n.Commands, n.Refused, n.Ledger, n.Finals} {
		if err := checkTopic("topic", topic, maxTopicLen); err != nil {
			return err
		}
	}
	if err := checkTopic("class topic prefix", n.ClassPrefix, maxTopicLen-rankcache.MaxBoardLen); err != nil {
		return err
	}
	return checkTopic("update topic prefix", n.UpdatePrefix, maxTopicLen-rankcache.MaxBoardLen)
}

const maxTopicLen = 249 // Kafka's limit

func checkTopic(what, name string, limit int) error {
	if len(name) == 0 || len(name) > limit {
		return fmt.Errorf("%s %q: want 1 to %d characters", what, name, limit)
	}
	for i := range len(name) { // a topic may be longer than a board id, and has no ":"
		if c := name[i : i+1]; c == ":" || !plain(c[0]) {
			return fmt.Errorf("%s %q: want characters of A-Z a-z 0-9 . _ -", what, name)
		}
	}
	return nil
}

// BoardKey returns the key of the board's sorted set.
func (n Names) BoardKey(b rankcache.BoardID) string { return fill(n.Board, "<board>", string(b)) }

// MetaKey returns the key of the board's [Meta].
func (n Names) MetaKey(b rankcache.BoardID) string { return n.beside(n.Meta, b) }

// beside returns a key of a board beside its sorted set, in the slot of that.
func (n Names) beside(pattern string, b rankcache.BoardID) string {
	if name, ok := strings.CutPrefix(pattern, "{<board>}:"); ok && !strings.Contains(n.Board, "{") && b.HasTag() {
		pattern = rankcache.OwnPrefix + name + ":<board>"
	}
	return fill(pattern, "<board>", string(b))
}

// OrdersKey returns the key of one hash of order ids: set is the turn's parity or [PrimeSet], bucket [OrderBucket]'s.
func (n Names) OrdersKey(b rankcache.BoardID, set, bucket int) string {
	return fill(n.beside(n.Orders, b), "<bucket>", strconv.Itoa(set)+"."+strconv.Itoa(bucket))
}

// AdopterKey returns the key of the lease of the writer that adds up the board.
func (n Names) AdopterKey(b rankcache.BoardID) string { return n.beside(n.Adopter, b) }

// CountKey returns the key of how far a board has been added up that clients of sidecars write meanwhile.
func (n Names) CountKey(b rankcache.BoardID) string { return n.CompanionKey(b, countName) }

const countName Companion = "count"

// RoomKey returns the key of the set of boards running in the room of uid.
func (n Names) RoomKey(uid string) string { return fill(n.Room, "<uid>", uid) }

// HotKey returns the key of the hot-key verdict of a Redis instance.
func (n Names) HotKey(instance string) string { return fill(n.Hot, "<instance>", instance) }

// StatesKey returns the key of all super-hot boards' states, as an instance's keeper publishes them ([States]).
func (n Names) StatesKey(instance string) string {
	return fill(n.States, "<instance>", instance) + statesValue
}

// HiddenListKey returns the key of the hash of members hidden on all of a class's boards, to the serial that hid them.
func (n Names) HiddenListKey(class string) string { return n.Rooms + ":hidden:" + class }

// KeeperKey returns the key of the lease of the keeper that works for an instance.
func (n Names) KeeperKey(instance string) string {
	return fill(n.States, "<instance>", instance) + keeperLease
}

// ReadsKey returns the key of the hash of what the sidecars of an instance report of their reads, sidecar to [Reads].
func (n Names) ReadsKey(instance string) string {
	return fill(n.States, "<instance>", instance) + readsHash
}

// WrittenKey returns the key of the time at which the keeper of an instance has published last ([ParseWritten]).
func (n Names) WrittenKey(instance string) string {
	return fill(n.States, "<instance>", instance) + statesWritten
}

const statesValue, statesWritten, keeperLease, readsHash = ":value", ":written", ":lease", ":reads"

// AppliedKey returns the key of the positions of the master that has a tag's slot.
func (n Names) AppliedKey(tag string) string {
	return fill(fill(n.Applied, "<tag>", tag), "<topic>", n.Commands)
}

// WantedKey returns the key of the set of a damaged master's boards whose commands wait for the ledger.
func (n Names) WantedKey(tag string) string { return n.besideApplied(tag, ":wanted") }

// AnswersKey returns the key of the hash of what the ledger has answered for such boards: "<answer> <era>", where the
// answer is one of [AnswerGo] and [AnswerEnded]; and [AnswersLeft].
func (n Names) AnswersKey(tag string) string { return n.besideApplied(tag, ":answers") }

func (n Names) besideApplied(tag, suffix string) string {
	return fill(fill(n.Applied, "<tag>", tag), "<topic>", n.Commands+suffix)
}

// BoardOfKey is the inverse of [Names.BoardKey]: it returns the board whose sorted set is at key, and false for every
// other key. With the default pattern any legal id is a board, except a key that matches one of the other patterns.
func (n Names) BoardOfKey(key string) (rankcache.BoardID, bool) {
	b, ok := n.idOfKey(key)
	return b, ok && b.Check() == nil
}

func (n Names) idOfKey(key string) (rankcache.BoardID, bool) {
	if n.isOwn(key) {
		return "", false
	}
	before, after, _ := strings.Cut(n.Board, "<board>")
	id, ok := cutBoth(key, before, after)
	return rankcache.BoardID(id), ok
}

// UnfitKey returns why a key at a board's place is none: its id is no id. Nil: it is one, or at another place.
func (n Names) UnfitKey(key string) error {
	if b, ok := n.idOfKey(key); ok {
		return b.Check()
	}
	return nil
}

// CheckBoard returns an error that wraps [rankcache.ErrBoard] unless the id is one that a board
// may have: none of which the key is, or begins like, another one of these names.
func (n Names) CheckBoard(b rankcache.BoardID) error {
	if err := b.Check(); err != nil {
		return err
	}
	if key := n.BoardKey(b); n.isOwn(key) {
		return fmt.Errorf("%w %q: the key %s is one of rankcache's own: see the settings key-…", rankcache.ErrBoard, string(b), key)
	}
	return nil
}

// isOwn reports whether a key is, or begins like, one that is no board's.
func (n Names) isOwn(key string) bool {
	if n.IsShared(key) {
		return true
	}
	isCompanion := func(c Companion) bool { return matches(key, n.companion(c)) }
	return matches(key, n.Meta) || matches(key, n.Orders) || matches(key, n.Adopter) || matches(key, n.Companion) &&
		(slices.ContainsFunc(Companions(), isCompanion) || isCompanion(ladderName) || isCompanion(ladderLease) || isCompanion(countName))
}

// IsShared reports whether a key is, or begins like, one of those that are of no single board.
func (n Names) IsShared(key string) bool {
	for _, one := range []string{n.Rooms, n.Readopt, n.Ends, n.RoomEnds, n.Controller, n.AbsentTopics} {
		if rest, ok := strings.CutPrefix(key, one); ok && (rest == "" || rest[0] == ':') {
			return true
		}
	}
	for _, end := range [...]string{statesValue, statesWritten, keeperLease, readsHash} {
		if start, ok := strings.CutSuffix(key, end); ok && matches(start, n.States) {
			return true
		}
	}
	return matches(key, n.Room) || matches(key, n.Hot) || matches(key, n.Applied) || strings.HasPrefix(key, rankcache.OwnPrefix)
}

// Topic returns the topic of the board's updates, ":" as "." and others escaped; readers take the board from updates.
func (n Names) Topic(b rankcache.BoardID) string {
	return n.UpdatePrefix + strings.ReplaceAll(escape(b, '_', maxTopicLen-len(n.UpdatePrefix)), ":", ".")
}

// ClassTopic returns the topic of the class's boards of parts of one day; date is written as 20261122.
func (n Names) ClassTopic(class, date string) string { return n.ClassPrefix + class + "." + date }

func fill(pattern, placeholder, value string) string {
	before, after, _ := strings.Cut(pattern, placeholder)
	return before + value + after
}

// matches reports whether key could be pattern with its first placeholder, and all behind a second, filled.
func matches(key, pattern string) bool {
	before, rest, _ := strings.Cut(pattern, "<")
	key, ok := strings.CutPrefix(key, before)
	if !ok { // of most keys
		return false
	}
	_, after, _ := strings.Cut(rest, ">")
	after, _, open := strings.Cut(after, "<")
	if open {
		return strings.Contains(key, after)
	}
	return strings.HasSuffix(key, after)
}

func cutBoth(s, before, after string) (string, bool) {
	s, ok := strings.CutPrefix(s, before)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, after)
}
