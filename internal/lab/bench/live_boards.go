package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/rooms"
	"rankcache/wire"
)

// sharedBoards are the running boards of one class whose updates share a topic.
type sharedBoards struct {
	classes string // of the rooms file
	topic   string
	ids     []rankcache.BoardID
}

// newSharedBoards returns n boards, whose period goes on for 6 hours at least.
func newSharedBoards(n int, now time.Time) (*sharedBoards, error) {
	zone := "UTC"
	if now.UTC().Hour()%12 >= 6 {
		zone = "Etc/GMT+6"
	}
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%q", fmt.Sprint(i))
	}
	s := &sharedBoards{classes: fmt.Sprintf("classes:\n- {name: bench-live, board: \"benchlive:{n}:{period}\", period: 12h, tz: %s, mode: super-hot, dims: {n: [%s]}}\n", zone, strings.Join(values, ", "))}
	file, err := rooms.Parse([]byte(s.classes))
	if err != nil {
		return nil, err
	}
	for i := range n {
		board, err := file.Classes[0].At(map[string]string{"n": fmt.Sprint(i)}, now)
		if err != nil {
			return nil, err
		}
		s.ids, s.topic = append(s.ids, board.ID), board.Topic(wire.DefaultNames())
	}
	return s, nil
}

// fill makes the boards in Redis, and their updates in the topic.
func (s *sharedBoards) fill(ctx context.Context, b *openBench) error {
	topic, err := fill.NewTopic(ctx, b.kafka, s.topic, 1)
	if err != nil {
		return err
	}
	defer topic.Close()
	for _, id := range s.ids {
		board := fill.NewBoard(id)
		for i := range smallMembers {
			u := board.Set(benchMember(i), float64(1+i%1000))
			u.OrderID, u.At = fmt.Sprintf("order-%d", i), time.Now().UnixMilli()
			if err := topic.Put(&u); err != nil {
				return err
			}
		}
		if err := board.Redis(ctx, b.redis, wire.DefaultNames(), 0); err != nil {
			return err
		}
		b.filled[id] = board
	}
	return topic.Flush(ctx)
}
