package writer

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/rooms"
	"rankcache/wire"
)

// Without a board life no key of a board expires.
func TestNoExpiryByDefault(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("incr", "o1", "a", "delta", 1))
	h.checkLife(t, rules{}, 0)
}

// A board without a period expires a board life after its last change, all its keys at one
// time, however it is changed, and while it is changed never.
func TestLifeCountsFromTheLastChange(t *testing.T) {
	const life = time.Hour
	for name, c := range map[string]struct {
		boardLife time.Duration
		rules     rules
	}{
		"board life":                          {life, rules{}},
		"keep of a class with guard and trim": {time.Minute, rules{keep: life, guard: rooms.Guard{Changes: 1000, Per: time.Minute}, trim: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			h := quiet(t, func(o *Options) { o.BoardLife = c.boardLife })
			for i := range 40 {
				h.at0(h.at + int64(i)*7*time.Minute.Milliseconds())
				change := Command{Member: fmt.Sprint("m", i%5), Op: wire.OpIncr, Number: 1, OrderID: fmt.Sprint("o", i), At: h.applier.now().UnixMilli()}
				if j := h.applyOne(t, c.rules, change); j.Refusal != nil {
					t.Fatal(j.Refusal)
				}
				h.checkLife(t, c.rules, life)
				if i%10 == 9 { // it is born with its first member again
					must(t, h.client.Del(t.Context(), h.opts.Names.BoardKey(h.board)).Err())
				}
			}
		})
	}
}

// What changes nothing has no board live longer, also when the orders have turned meanwhile; the next
// change does.
func TestRepeatsDoNotExtendTheLife(t *testing.T) {
	for name, begin := range map[string]time.Duration{"within a turn": 0, "over a turn": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			const life = 10 * time.Minute
			h := quiet(t, func(o *Options) { o.BoardLife = life })
			span := (DefaultOrderLife + 2*time.Minute).Milliseconds()
			h.at = (h.at/span+1)*span + begin.Milliseconds()
			h.at0(h.at)
			h.do1(t, h.command("o1", "a"))
			turn, ends := h.meta(t).Turn, h.expiry(t, rules{})
			h.at0(h.at + 9*time.Minute.Milliseconds())
			equal(t, "repeat", h.do1(t, h.command("o1", "a")).Duplicate, true)
			equal(t, "turned", h.meta(t).Turn > turn, begin < 0)
			equal(t, "expires", h.expiry(t, rules{}), ends)
			h.do1(t, h.command("o2", "a"))
			h.checkLife(t, rules{}, life)
		})
	}
}

// A change gives a board the life that is set now: an expiry of another setting, or of an
// earlier version, ends, and one that had none gets it. Boards with a period keep theirs.
func TestLifeIsThatOfTheSetting(t *testing.T) {
	h := quiet(t, func(o *Options) { o.BoardLife = 72 * time.Hour })
	h.at0(h.at)
	for i, life := range []time.Duration{72 * time.Hour, 0, time.Hour, 100 * time.Hour} {
		h.opts.BoardLife = life
		h := h.restarted(t)
		h.at0(h.at)
		h.do1(t, h.command(fmt.Sprint("o", i), "a"))
		h.checkLife(t, rules{}, life)
		h.applyOne(t, rules{keep: keepAsItIs}, Command{Member: "a", Op: wire.OpIncr, Number: 1, OrderID: fmt.Sprint("p", i)})
		h.checkLife(t, rules{}, life)
	}
}

// A sorted set that was there before has the life that is set; if none is, it keeps an expiry
// of its own, which the other keys then share.
func TestLifeOfExistingBoard(t *testing.T) {
	for _, c := range []struct{ set, own, want time.Duration }{{0, 0, 0}, {time.Hour, 0, time.Hour}, {time.Hour, 30 * time.Minute, time.Hour}} {
		h := quiet(t, func(o *Options) { o.BoardLife = c.set })
		h.at0(h.at)
		must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Score: 5, Member: "old"}).Err())
		if c.own > 0 {
			must(t, h.client.PExpire(t.Context(), string(h.board), c.own).Err())
		}
		h.do1(t, h.opCommand("incr", "o1", "old", "delta", 1))
		h.checkLife(t, rules{}, c.want)
	}
	h := quiet(t, nil)
	must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Score: 5, Member: "old"}).Err())
	must(t, h.client.PExpire(t.Context(), string(h.board), 30*time.Minute).Err())
	for i := range 3 {
		h.do1(t, h.command(fmt.Sprint("o", i), "old"))
		for _, key := range h.applier.allKeys(h.board, &rules{}) {
			if left := h.client.PTTL(t.Context(), key).Val(); left > 30*time.Minute || left < 29*time.Minute {
				t.Errorf("%s lives %v, want 30m", key, left)
			}
		}
	}
}

// A board that is adopted again keeps its life, whose class the adopter does not know.
func TestReadoptionKeepsTheLife(t *testing.T) {
	r := rules{keep: time.Hour, trim: 5}
	h := quiet(t, nil)
	h.at0(h.at)
	h.applyOne(t, r, Command{Member: "a", Op: wire.OpIncr, Number: 1, OrderID: "o1"})
	before := h.meta(t)
	must(t, h.client.HSet(t.Context(), h.opts.Names.Readopt, string(h.board), before.Run).Err())
	must(t, readopter{h.applier.adopter}.readoptOnce(t.Context()))
	equal(t, "adopted", h.meta(t).Run > before.Run, true)
	h.checkLife(t, r, time.Hour)
}

// checkLife fails unless all keys of the board expire together, at the least life after now, and
// little later; 0 means never.
func (h *fixture) checkLife(t *testing.T, r rules, life time.Duration) {
	t.Helper()
	ends := h.expiry(t, r)
	left := time.UnixMilli(ends.Milliseconds()).Sub(h.applier.now())
	if life == 0 && ends != -1 || life > 0 && (left < life || left > life+life/8+time.Second) {
		t.Errorf("the board lives %v (%d), want %v", left, ends, life)
	}
}

// expiry returns when all keys of the board expire, since 1970, and fails unless they do so together,
// when the meta says.
func (h *fixture) expiry(t *testing.T, r rules) (first time.Duration) {
	t.Helper()
	for i, key := range h.applier.allKeys(h.board, &r) {
		ends := h.client.PExpireTime(t.Context(), key).Val()
		if i == 0 {
			first = ends
		}
		if ends != first {
			t.Errorf("%s expires at %v, the board at %v", key, ends, first)
		}
	}
	equal(t, "expiry in the meta", int64(h.meta(t).Expires), max(0, first.Milliseconds()))
	return first
}
