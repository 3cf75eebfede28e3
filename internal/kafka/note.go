package kafka

import "strings"

// Note is what writers commit beside an offset.
type Note struct {
	Topic     string // id of the topic that the offset is of; "" if it is not known
	Positions bool   // masters of Redis have positions of the partition
}

const (
	noteOurs      = "rankcache"
	notePositions = "positions"
	noteTopic     = "topic="
)

// String returns the note as it is committed.
func (n Note) String() string {
	text := noteOurs
	if n.Positions {
		text += " " + notePositions
	}
	if n.Topic != "" && n.Topic != NoTopicID {
		text += " " + noteTopic + n.Topic
	}
	return text
}

// NoteOf returns the note beside an offset, an empty one if there is none.
func NoteOf(at TopicPartition) (n Note) {
	if at.Metadata == nil {
		return n
	}
	words := strings.Fields(*at.Metadata)
	if len(words) == 0 || words[0] != noteOurs {
		return n
	}
	for _, word := range words[1:] {
		if id, ok := strings.CutPrefix(word, noteTopic); ok {
			n.Topic = id
		}
		n.Positions = n.Positions || word == notePositions
	}
	return n
}

// Of reports whether the offset may be one of the topic with an id, as far as both are known.
func (n Note) Of(topic string) bool {
	return n.Topic == "" || topic == "" || topic == NoTopicID || n.Topic == topic
}
