package replay

import (
	"context"
	"time"

	"rankcache"
)

// asker reads states of Redis for the gates. Those that ask while it waits are asked for together.
type asker struct {
	origin    Origin
	questions chan question
}

type question struct {
	board   rankcache.BoardID
	sources *sources
	answer  chan<- answer // has room for it
}

type answer struct {
	reading
	err error
}

const askedAtOnce = 100 // how many boards are asked for in a round trip

func newAsker(o Origin) *asker { return &asker{o, make(chan question)} }

// read returns the state that a board has in Redis.
func (a *asker) read(ctx context.Context, board rankcache.BoardID, s *sources) (reading, error) {
	back := make(chan answer, 1)
	select {
	case a.questions <- question{board, s, back}:
	case <-ctx.Done():
		return reading{}, ctx.Err()
	}
	select {
	case got := <-back:
		return got.reading, got.err
	case <-ctx.Done():
		return reading{}, ctx.Err()
	}
}

func (a *asker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-a.questions:
			a.ask(ctx, a.gather(first))
		}
	}
}

func (a *asker) gather(first question) []question {
	all := []question{first}
	for len(all) < askedAtOnce {
		select {
		case q := <-a.questions:
			all = append(all, q)
		default:
			return all
		}
	}
	return all
}

func (a *asker) ask(ctx context.Context, all []question) {
	ids, answers := make([]rankcache.BoardID, len(all)), make([]answer, len(all))
	at := time.Now()
	for i, q := range all {
		ids[i], answers[i].current = q.board, q.sources.current()
	}
	stamps, err := a.origin.Stamps(ctx, ids)
	for i, q := range all {
		if answers[i].err = err; i < len(stamps) && (err == nil || !stamps[i].At.IsZero()) {
			answers[i] = answer{readingOf(&stamps[i], at, answers[i].current), nil}
		}
		q.answer <- answers[i]
	}
}
