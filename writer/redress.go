package writer

import (
	"time"

	"rankcache/internal/kafka"
	"rankcache/rooms"
	"rankcache/wire"
)

// isRedress reports whether the ledger has posted a record because Redis has lost its change.
// Posts have no headers, so that only those who may write to the command topic can say so.
func isRedress(m *kafka.Message) bool {
	for _, h := range m.Headers {
		if h.Key == wire.RedressHeader {
			return true
		}
	}
	return false
}

// redressed takes the records that the ledger has posted.
type redressed struct{ *processor }

// accept returns the job of a change that was applied before, in time and within the
// guards, which are not looked at again. A closed board refuses it.
func (p redressed) accept(data []byte, at int64, arrived time.Time) (*job, error) {
	c, err := DecodeCommand(data, at)
	if err != nil {
		return &job{Command: c}, err
	}
	if _, kind, _ := p.opts.Tiers.File().Board(c.Board); kind != nil && kind.Ties != rooms.TiesMember {
		c.Number = kind.Form.Shown(c.Number) // a set has the raw score, with its tie-break
	}
	j, err := p.check(c, arrived)
	j.outside, j.rules.guard = nil, rooms.Guard{}
	return j, err
}
