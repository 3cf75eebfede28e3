package places

import (
	"regexp"
	"strings"

	"rankcache"
	"rankcache/wire"
)

type keys struct {
	place string
	names func(wire.Names) []string // patterns, with placeholders as <board>
}

// companionKeys returns the names of a hash beside a board, whose id may have a hash tag of its own.
func companionKeys(name string) func(wire.Names) []string {
	return func(n wire.Names) []string {
		return []string{strings.Replace(n.Companion, "<companion>", name, 1), rankcache.OwnPrefix + name + ":<board>"}
	}
}

// redisKeys are the keys, beside sorted sets, whose value may have the id. The first that fits is a key's.
var redisKeys = []keys{
	{"redis: guards of boards", companionKeys(string(wire.Guard))},
	{"redis: gains of boards", companionKeys(string(wire.Gain))},
	{"redis: scores of trimmed boards", companionKeys(string(wire.Scores))},
	{"redis: hidden members of boards", companionKeys(string(wire.Hidden))},
	{"redis: data of boards", companionKeys(string(wire.Data))},
	{"redis: ladders of boards", companionKeys("ladder")},
	{orderRecords, func(n wire.Names) []string { return []string{n.Orders, rankcache.OwnPrefix + "orders:<board>"} }},
	{"redis: members hidden in classes", func(n wire.Names) []string { return []string{n.HiddenListKey("<class>")} }},
	{"redis: boards of rooms", func(n wire.Names) []string { return []string{n.Room} }},
	{"redis: rooms set at run time", func(n wire.Names) []string { return []string{n.Rooms, n.Rooms + ":<more>"} }},
	{"redis: ends of boards", func(n wire.Names) []string { return []string{n.Ends, n.RoomEnds} }},
	{"redis: hot boards", func(n wire.Names) []string { return []string{n.Hot} }},
	{"redis: states of boards", func(n wire.Names) []string { return []string{n.StatesKey("<instance>"), n.ReadsKey("<instance>")} }},
	{"redis: work of writers and controllers", func(n wire.Names) []string {
		return []string{n.Readopt, n.AbsentTopics, n.Controller, n.Applied, n.Meta, n.Adopter, n.WrittenKey("<instance>"), n.KeeperKey("<instance>")}
	}},
	{"redis: other keys of rankcache", func(wire.Names) []string { return []string{rankcache.OwnPrefix + "<more>"} }},
}

// boardSets is the place of the sorted sets of boards, and orderRecords that of what repeats are known by.
const boardSets, orderRecords = "redis: boards", "redis: order ids of boards"

// kindOf tells the place of a key, "" if it is none of rankcache's, and the board of a set, or of a hash by member.
func kindOf(n wire.Names) func(key string) (place string, board rankcache.BoardID) {
	placeholder := regexp.MustCompile(`<[a-z]+>`)
	var all []*regexp.Regexp
	var of []string
	for _, k := range redisKeys {
		for _, pattern := range k.names(n) {
			parts := placeholder.Split(pattern, -1)
			for i := range parts {
				parts[i] = regexp.QuoteMeta(parts[i])
			}
			all, of = append(all, regexp.MustCompile("^(?s:"+strings.Join(parts, "(.+)")+")$")), append(of, k.place)
		}
	}
	hashes := 2 * len(wire.Companions()) // of those, which are first
	return func(key string) (string, rankcache.BoardID) {
		if b, ok := n.BoardOfKey(key); ok {
			return boardSets, b
		}
		for i, re := range all {
			if m := re.FindStringSubmatch(key); m != nil && i < hashes {
				return of[i], rankcache.BoardID(m[1])
			} else if m != nil {
				return of[i], ""
			}
		}
		return "", ""
	}
}

// table is one table of the ledger, with the columns that are the id, have it within a text, or within bytes.
type table struct {
	name             string
	is, texts, bytes []string
	at               string // when a row came about, in Unix milliseconds; "": not kept
}

var tables = []table{
	{"rank_log", []string{"member"}, []string{"board", "order_id", "by_groups", "data", "given"}, nil, "at"},
	{"rank_lost", []string{"member"}, []string{"board", "order_id", "by_groups", "data", "given"}, nil, "at"},
	{"rank_score", []string{"member"}, []string{"board", "data"}, nil, ""},
	{"rank_board", nil, []string{"board", "dims"}, nil, "at"},
	{"rank_final", []string{"member"}, []string{"board", "data"}, nil, "end_at"},
	{"rank_final_board", nil, []string{"board", "dims", "file"}, nil, "end_at"},
	{"rank_forget", []string{"member"}, []string{"board"}, nil, "at"},
	{"rank_bad", nil, []string{"topic"}, []string{"value"}, ""},
}

// topics returns the topics by name or, with a * at the end, by their beginning.
func topics(n wire.Names) []string {
	return []string{n.Commands, n.Refused, n.Ledger, n.Finals, n.UpdatePrefix + "*", n.ClassPrefix + "*"}
}

// elsewhere are places that no server has: what stays there, and until when.
var elsewhere = []Found{
	{Place: "files: finals and their differences (Parquet, CSV)", Stays: "until you delete them, in the folder or bucket of the finals"},
	{Place: "files: boards, snapshots and hot pages", Stays: "until they are written again, by the next save after the board has changed"},
	{Place: "memory: events, gains, profiles, pages", Stays: "until the processes end, or newer ones take their place"},
	{Place: "logs of all processes", Stays: "as long as you keep them"},
	{Place: "files: bundles of rankcache debug", Stays: "until you delete them"},
	{Place: "backups of Redis, Kafka and the database", Stays: "as long as you keep them"},
}
