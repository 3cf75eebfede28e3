package replay

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"rankcache/wire"
)

// fakeLog is a log in Redis with entries at places.
type fakeLog struct {
	places []int64
	end    int64
	away   bool
	reads  []int64 // behind which places
}

func (l *fakeLog) add(places ...int64) {
	l.places = append(l.places, places...)
	l.end = places[len(places)-1] + 1
}

func (l *fakeLog) lose() { l.places, l.end = nil, 1 }

var errFakeAway = errors.New("the fake is away")

func (l *fakeLog) Ends(context.Context) (first, end int64, err error) {
	if l.away {
		return 0, 0, errFakeAway
	}
	return slices.Min(append([]int64{l.end}, l.places...)), l.end, nil
}

func (l *fakeLog) Read(_ context.Context, after int64, most int, _ time.Duration) (entries []wire.LogEntry, err error) {
	if l.reads = append(l.reads, after); l.away {
		return nil, errFakeAway
	}
	for _, at := range l.places {
		if at > after && len(entries) < most {
			entries = append(entries, wire.LogEntry{Place: at})
		}
	}
	return entries, nil
}

// Reading goes on behind what was read, and from ten seconds before it once a call has failed or the log has lost that.
func TestPlaceInTheLog(t *testing.T) {
	const s = wire.LogSecond
	l := &fakeLog{end: 100*s + 1}
	part := newTopic(topicInfo{wire.LogKey, streamID, 1}, false).parts[0]
	p := place{part: part, last: 100 * s, quiet: true}
	type step struct {
		kind   itemKind
		offset int64
	}
	next := func(want ...step) {
		t.Helper()
		items, err := p.next(t.Context(), l)
		got := make([]step, len(items))
		for i, it := range items {
			got[i] = step{it.kind, it.offset}
		}
		if (err != nil) != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	next(step{itemEnd, 100*s + 1})
	l.add(101*s, 101*s+1, 115*s)
	next(step{itemRecord, 101 * s}, step{itemRecord, 101*s + 1}, step{itemRecord, 115 * s})
	next(step{itemEnd, 115*s + 1})

	l.away = true
	next()
	next()
	if l.away = false; len(l.reads) != 3 {
		t.Error("it reads where it is not known how far the log goes:", l.reads)
	}
	l.add(116 * s)
	next(step{itemAgain, 105*s + 1}, step{itemRecord, 115 * s}, step{itemRecord, 116 * s})
	next(step{itemEnd, 116*s + 1})

	l.lose() // as by FLUSHALL
	next(step{itemAgain, 1}, step{itemEnd, 1})
	next(step{itemEnd, 1})
	l.add(50*s, 60*s) // the clock is another
	next(step{itemRecord, 50 * s}, step{itemRecord, 60 * s})
	next(step{itemEnd, 60*s + 1})

	l.places, l.end = []int64{44 * s, 46 * s, 56 * s}, 56*s+1 // an older dump
	next(step{itemAgain, 46*s + 1}, step{itemRecord, 56 * s})

	l.add(70 * s)
	l.places = nil // all are cut
	next(step{itemEnd, 56*s + 1})
	next(step{itemEnd, 70*s + 1})
}

// A dispatcher that is sent back takes what comes again, and the log counts as read where that has come to.
func TestDispatchGoesBack(t *testing.T) {
	d := dispatcherOf(feedOf(&fakeBoard{}))
	part := newTopic(topicInfo{wire.LogKey, streamID, 1}, false).parts[0]
	part.start(50)
	part.high = 100
	entry := &wire.LogEntry{Board: "nobody's"}
	d.dispatch([]item{{part: part, offset: 120, entry: entry}})
	d.dispatch([]item{{part: part, offset: 60, kind: itemAgain}})
	if part.ended() || part.topic.rewound.Load() {
		t.Error("what is to be read again counts as read")
	}
	d.dispatch([]item{{part: part, offset: 60, entry: entry}, {part: part, offset: 110, entry: entry}})
	if part.topic.rewound.Load() || part.next.Load() != 111 || !part.ended() {
		t.Errorf("at %d", part.next.Load())
	}
	d.dispatch([]item{{part: part, offset: 1, kind: itemAgain}, {part: part, offset: 1, kind: itemEnd}})
	if !part.ended() || part.next.Load() != 1 {
		t.Errorf("a log that was lost has not ended, at %d", part.next.Load())
	}
}
