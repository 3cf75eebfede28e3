package writer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/kafka"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// testOf stands for the digest of the days that primes are made of.
const testOf = "0123456789ab"

// changingTiers has a file that the test changes.
type changingTiers struct {
	tiers
	file *rooms.File
}

func (t *changingTiers) File() *rooms.File { return t.file }

// rollingWorld is a day class and rolling ones of it, in a time that the test sets. It plays the controller.
type rollingWorld struct {
	*fixture
	day   *rooms.Class
	rolls []*rooms.Class
	now   time.Time
	mark  *redis.Script
	tiers *changingTiers

	gifts  map[string]map[string]float64 // by tag and member: what the days' boards have
	closed map[string]bool               // tags
	sent   map[rankcache.BoardID]map[string]bool
	n      int
}

func newRollingWorld(t *testing.T, lasts ...int) *rollingWorld {
	t.Helper()
	prefix := lastPart(testkit.Name(t))
	text := fmt.Sprintf("classes:\n- {name: day, board: \"%s:{period}\", period: day, tz: Europe/Berlin, ops: [incr], grace: 10m, keep: 2400h}\n", prefix)
	for _, last := range lasts {
		text += fmt.Sprintf("- {name: last-%d, board: \"%sr%d:{period}\", keep: 2400h, rolling: {of: day, last: %d}}\n", last, prefix, last, last)
	}
	file, err := rooms.Parse([]byte(text))
	must(t, err)
	script, err := os.ReadFile("../controller/primed.lua")
	must(t, err)
	in := &changingTiers{file: file}
	w := &rollingWorld{fixture: quiet(t, func(o *Options) { o.Tiers = in }), tiers: in, day: file.Class("day"), mark: redis.NewScript(wire.Script(string(script))),
		gifts: make(map[string]map[string]float64), closed: make(map[string]bool), sent: make(map[rankcache.BoardID]map[string]bool)}
	for _, c := range file.Classes {
		if c.Rolls() {
			w.rolls = append(w.rolls, c)
		}
	}
	w.now = w.dayOf(t, time.Now().Add(48*time.Hour)).Period.Start.Add(time.Minute) // keys of the past would expire
	w.applier.now = func() time.Time { return w.now }
	must(t, w.applier.fenced(t.Context()))
	return w
}

func (w *rollingWorld) dayOf(t *testing.T, at time.Time) class.Board {
	t.Helper()
	b, err := w.day.At(nil, at)
	must(t, err)
	return b
}

// take has the writer take a record of the command topic that arrives now.
func (w *rollingWorld) take(t *testing.T, command string) []message {
	t.Helper()
	done, err := w.applyBatch(t.Context(), &batch{round: noRewinds, polled: time.Now(), records: []*kafka.Message{
		{TopicPartition: kafka.On("c", 0), Value: []byte(command), Timestamp: w.now, TimestampType: kafka.LogAppendTime}}})
	must(t, err)
	return done.messages
}

// gift gives to a member in the period of a time. A writer that is killed has changed the day's board alone, and the
// next one takes the command again.
func (w *rollingWorld) gift(t *testing.T, at time.Time, killed bool) (again func()) {
	t.Helper()
	w.n++
	b, member, delta := w.dayOf(t, at), fmt.Sprint("m", rand.IntN(5)), float64(1+rand.IntN(9))
	command := fmt.Sprintf(`{"order":"gift-%d","class":"day","member":%q,"op":"incr","delta":%v,"at":%d}`, w.n, member, delta, at.UnixMilli())
	if killed {
		j, err := w.accept([]byte(command), at.UnixMilli(), w.now)
		must(t, err)
		must(t, w.applier.apply(t.Context(), []*job{j}))
	}
	w.take(t, command)
	if w.gifts[b.Period.Tag] == nil {
		w.gifts[b.Period.Tag] = make(map[string]float64)
	}
	w.gifts[b.Period.Tag][member] += delta
	return func() { w.take(t, command) }
}

// metaOf returns the meta of a board, zero if there is none.
func (w *rollingWorld) metaOf(t *testing.T, b rankcache.BoardID) wire.Meta {
	t.Helper()
	m, err := w.applier.meta(t.Context(), b)
	must(t, err)
	return m
}

func (w *rollingWorld) closeDay(t *testing.T, b class.Board) {
	t.Helper()
	w.closed[b.Period.Tag] = true
	if m := w.metaOf(t, b.ID); m.Buckets > 0 {
		m.Life = wire.LifeClosed
		must(t, w.client.Set(t.Context(), w.opts.Names.MetaKey(b.ID), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
	}
}

// prime does what the controller does for a board, as far as it comes: a part of the primes, or all, some of them again.
func (w *rollingWorld) prime(t *testing.T, kind *rooms.Class, p class.Period, dies bool) {
	t.Helper()
	b, err := kind.In(nil, p)
	must(t, err)
	sources, err := kind.Sources(p)
	must(t, err)
	sums := make(map[string]float64)
	for _, s := range sources {
		if !w.closed[s.Tag] {
			return
		}
		from, err := w.day.In(nil, s)
		must(t, err)
		rows, err := w.client.ZRangeWithScores(t.Context(), string(from.ID), 0, -1).Result()
		must(t, err)
		for _, row := range rows {
			sums[row.Member.(string)] += row.Score
		}
		for member, raw := range w.hiddenOn(t, from.ID) {
			sums[member] += raw
		}
	}
	members := slices.Collect(maps.Keys(sums))
	if dies {
		members = members[:rand.IntN(len(members)+1)]
	}
	for _, m := range members {
		w.take(t, string(wire.Prime(b.ID, p.Tag, testOf, m, sums[m], sources[len(sources)-1].End.UnixMilli())))
	}
	meta := w.metaOf(t, b.ID)
	if dies || meta.Buckets == 0 {
		return
	}
	keys := []string{string(b.ID), w.opts.Names.MetaKey(b.ID)}
	for bucket := range int(meta.Buckets) {
		keys = append(keys, w.opts.Names.OrdersKey(b.ID, wire.PrimeSet, bucket))
	}
	answer, err := w.mark.Run(t.Context(), w.client, keys, len(sums), w.applier.eras.list()).Text()
	must(t, err)
	equal(t, string(b.ID)+" is marked", answer, "ok")
	equal(t, "hashes of primes", w.client.Exists(t.Context(), keys[2:]...).Val(), int64(0))
	if len(members) > 0 { // of a controller that has slept
		m := members[0]
		again := w.take(t, string(wire.Prime(b.ID, p.Tag, testOf, m, sums[m], sources[len(sources)-1].End.UnixMilli())))
		if len(again) != 1 || !strings.Contains(string(again[0].value), "has all of its primes") {
			t.Errorf("%v, want it refused", again)
		}
	}
}

// hiddenOn returns the hidden members of a board and their scores.
func (w *rollingWorld) hiddenOn(t *testing.T, b rankcache.BoardID) map[string]float64 {
	t.Helper()
	all := make(map[string]float64)
	for member, value := range w.client.HGetAll(t.Context(), w.opts.Names.CompanionKey(b, wire.Hidden)).Val() {
		if v, raw, _ := wire.ParseHidden(value); v.Hidden && !v.Bare {
			all[member] = raw
		}
	}
	return all
}

// hide hides or restores a member on today's board or on a rolling one of now.
func (w *rollingWorld) hide(t *testing.T) {
	t.Helper()
	b := w.dayOf(t, w.now)
	if rand.IntN(2) == 0 {
		var err error
		b, err = w.rolls[rand.IntN(len(w.rolls))].At(nil, w.now)
		must(t, err)
	}
	w.n++
	member, op := fmt.Sprint("m", rand.IntN(5)), []string{"hide", "restore"}[rand.IntN(2)]
	w.take(t, fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,"op":%q,"reason":"test","at":%d}`, wire.HideOrder(uint64(w.n), member), b.ID, member, op, w.now.UnixMilli()))
}

// want returns what a board should have.
func (w *rollingWorld) want(t *testing.T, kind *rooms.Class, p class.Period) map[string]float64 {
	t.Helper()
	sums := make(map[string]float64)
	for range kind.Rolling.Last {
		for m, n := range w.gifts[p.Tag] {
			sums[m] += n
		}
		var err error
		p, err = w.day.Calendar().Previous(p)
		must(t, err)
	}
	return sums
}

// check compares the running board of each rolling class with what it should have, unless it is incomplete.
func (w *rollingWorld) check(t *testing.T) (incomplete int) {
	t.Helper()
	for _, kind := range w.rolls {
		b, err := kind.At(nil, w.now)
		must(t, err)
		meta := w.metaOf(t, b.ID)
		if !meta.Primed {
			incomplete++
			continue
		}
		got := make(map[string]float64)
		rows, err := w.client.ZRangeWithScores(t.Context(), string(b.ID), 0, -1).Result()
		must(t, err)
		var sum uint64
		for _, row := range rows {
			got[row.Member.(string)] = row.Score
			sum = (sum + wire.Hash(row.Member.(string), row.Score)) & wire.SumMask
		}
		for member, raw := range w.hiddenOn(t, b.ID) {
			if _, seen := got[member]; seen {
				t.Errorf("%s is hidden on %s, and seen", member, b.ID)
			}
			got[member] = raw
		}
		equal(t, string(b.ID), got, w.want(t, kind, b.Period))
		equal(t, "sum of "+string(b.ID), meta.Sum, sum)
	}
	return incomplete
}

// Days with gifts that come late, are repeated, or are cut by a writer's death, while the controller dies again and again and some
// days are closed late: after each command a running board is the sum of its days or is incomplete, which few moments are.
// A board from which the days that leave are subtracted, a member at a time, is wrong in the same world.
func TestRollingBoardsEqualTheSumOfTheirDays(t *testing.T) {
	t.Parallel()
	w := newRollingWorld(t, 2, 3, 7, 30)
	var again []func()
	subtracted, leaving, wrong := make(map[string]float64), make(map[string]float64), 0
	moments, incomplete := 0, 0
	started := w.dayOf(t, w.now).Period.Start
	for day := range 60 {
		today := w.dayOf(t, w.now).Period
		closesAt := today.Start.Add(20 * time.Minute)
		if day%9 == 8 { // that of yesterday
			closesAt = today.Start.Add(20 * time.Hour)
		}
		yesterday, err := w.day.Calendar().Previous(today)
		must(t, err)
		left := today
		for range 7 {
			left, err = w.day.Calendar().Previous(left)
			must(t, err)
		}
		maps.Copy(leaving, w.gifts[left.Tag])
		gifts := 6 * (1 - (day%11)/10) // on some days none
		for step := range 8 {
			w.now = today.Start.Add(time.Duration(step) * today.End.Sub(today.Start) / 8).Add(time.Duration(1+rand.IntN(300)) * time.Second)
			at := w.now
			if step == 0 && yesterday.Start.Compare(started) >= 0 && rand.IntN(2) == 0 {
				at = yesterday.End.Add(-time.Second) // late, within the grace
			}
			if rand.IntN(3) == 0 {
				w.hide(t)
			}
			if step < gifts {
				repeat := w.gift(t, at, rand.IntN(4) == 0)
				if again = append(again, repeat); rand.IntN(3) == 0 {
					again[rand.IntN(len(again))]()
				}
			}
			if w.now.After(closesAt) && !w.closed[yesterday.Tag] {
				from, err := w.day.In(nil, yesterday)
				must(t, err)
				w.closeDay(t, from)
			}
			next, err := w.day.Calendar().Next(today)
			must(t, err)
			for _, kind := range w.rolls {
				for _, p := range []class.Period{today, next} {
					if b, err := kind.In(nil, p); err == nil && !w.metaOf(t, b.ID).Primed {
						w.prime(t, kind, p, rand.IntN(2) == 0)
					}
				}
			}
			incomplete, moments = incomplete+w.check(t), moments+len(w.rolls)
			if t.Failed() {
				t.Fatalf("day %d, step %d", day, step)
			}

			// The subtracted one of seven days.
			for m, n := range leaving {
				subtracted[m] -= n
				delete(leaving, m)
				break
			}
			sums := w.want(t, w.rolls[2], today)
			maps.DeleteFunc(sums, func(_ string, n float64) bool { return n == 0 })
			have := maps.Clone(sums) // with what has not left yet
			for m, n := range leaving {
				have[m] += n
			}
			if !maps.Equal(sums, have) {
				wrong++
			}
		}
		w.now = today.End
	}
	t.Logf("incomplete at %d of %d moments; the subtracted board wrong at %d of %d", incomplete, moments, wrong, moments/len(w.rolls))
	if wrong == 0 {
		t.Error("the oracle does not see that the subtracted board is wrong")
	}
	if incomplete*2 > moments {
		t.Errorf("incomplete at %d of %d moments", incomplete, moments)
	}
}

// What is no prime of the controller is refused, however it comes, and changes nothing.
func TestPrimesAreTheControllers(t *testing.T) {
	t.Parallel()
	w := newRollingWorld(t, 3)
	kind := w.rolls[0]
	b, err := kind.At(nil, w.now)
	must(t, err)
	next, err := b.Next()
	must(t, err)
	tag := next.Period.Tag
	good := string(wire.Prime(next.ID, tag, testOf, "a", 5, 1))
	equal(t, "taken", len(w.take(t, good)), 0)
	equal(t, "again", len(w.take(t, good)), 0)
	equal(t, "score", w.client.ZScore(t.Context(), string(next.ID), "a").Val(), 5.0)
	for name, command := range map[string]string{
		"another number":   string(wire.Prime(next.ID, tag, testOf, "a", 6, 1)),
		"another class":    string(wire.Prime(w.dayOf(t, w.now).ID, w.dayOf(t, w.now).Period.Tag, testOf, "a", 5, 1)),
		"no class":         string(wire.Prime("1_2_3", tag, testOf, "a", 5, 1)),
		"another order id": strings.Replace(good, "prime/"+tag, "prime/"+b.Period.Tag, 1),
		"no digest":        strings.Replace(good, testOf+"/", "", 1),
		"another member":   strings.Replace(good, `"member":"a"`, `"member":"b"`, 1),
		"a set":            strings.NewReplacer(`"incr"`, `"set"`, `"delta"`, `"score"`).Replace(good),
		"no number":        strings.Replace(good, `"delta":5`, `"delta":NaN`, 1),
		"too much":         string(wire.Prime(next.ID, tag, testOf, "c", 1<<53, 1)),
		"not a prime":      strings.Replace(good, `,"prime":true`, "", 1),
	} {
		messages := w.take(t, command)
		if len(messages) != 1 || messages[0].topic != w.opts.Names.Refused {
			t.Errorf("%s: %v, want it refused", name, messages)
		}
	}
	status, answer := w.post(t, good)
	if status != http.StatusBadRequest || !strings.Contains(answer, `"argument":"prime"`) {
		t.Errorf("posted: %d %s", status, answer)
	}
	equal(t, "members", w.client.ZCard(t.Context(), string(next.ID)).Val(), int64(1))

	// An order life later it is known still, and in the board's own period. When that has ended none is taken.
	w.now = w.now.Add(20 * time.Hour)
	equal(t, "known", len(w.take(t, good)), 0)
	equal(t, "score", w.client.ZScore(t.Context(), string(next.ID), "a").Val(), 5.0)
	w.now = next.Period.End.Add(-time.Minute)
	w.take(t, string(wire.Prime(next.ID, tag, testOf, "d", 7, 1)))
	equal(t, "score", w.client.ZScore(t.Context(), string(next.ID), "d").Val(), 7.0)
	w.now = next.Period.End.Add(time.Hour)
	w.take(t, string(wire.Prime(next.ID, tag, testOf, "e", 7, 1)))
	equal(t, "members", w.client.ZCard(t.Context(), string(next.ID)).Val(), int64(2))
}

// A board that was made after the first gift, as its class is newer or as it was deleted, is never primed. That of the next
// period but one is.
func TestRollingBoardThatLacksChanges(t *testing.T) {
	t.Parallel()
	w := newRollingWorld(t, 2)
	kind := w.rolls[0]
	w.gift(t, w.now, false)
	first := func(b rankcache.BoardID) string {
		return w.client.HGet(t.Context(), w.opts.Names.OrdersKey(b, wire.PrimeSet, 0), "").Val()
	}
	b, err := kind.At(nil, w.now)
	must(t, err)
	next, err := b.Next()
	must(t, err)
	equal(t, "of today and tomorrow", []string{first(b.ID), first(next.ID)}, []string{wire.Whole, wire.Whole})
	must(t, w.client.Del(t.Context(), w.client.Keys(t.Context(), "*"+string(b.ID)+"*").Val()...).Err())
	must(t, w.client.Del(t.Context(), w.client.Keys(t.Context(), "*"+string(next.ID)+"*").Val()...).Err())
	w.gift(t, w.now, false)
	equal(t, "deleted", []string{first(b.ID), first(next.ID)}, []string{"", ""})
	// As one that was rebuilt, which has its primes and no record of them, it takes none.
	if refused := w.take(t, string(wire.Prime(next.ID, next.Period.Tag, testOf, "a", 5, 1))); len(refused) != 1 || refused[0].topic != w.opts.Names.Refused {
		t.Errorf("a prime of a board that is not whole: %v, want it refused", refused)
	}
	w.now = next.Period.Start.Add(time.Hour)
	w.gift(t, w.now, false)
	after, err := next.Next()
	must(t, err)
	equal(t, "a day later", []string{first(next.ID), first(after.ID)}, []string{"", wire.Whole})
}

// What a class feeds is rolled as what commands name is: one increment changes the boards of both, and their rolling ones.
func TestRollingOfWhatIsFed(t *testing.T) {
	t.Parallel()
	prefix := lastPart(testkit.Name(t))
	file, err := rooms.Parse([]byte(strings.ReplaceAll(`classes:
- {name: hour, board: "NAMEh:{period}", period: 1h, ops: [incr], feeds: [day, total]}
- {name: day, board: "NAMEd:{period}", period: day, ops: [incr]}
- {name: total, board: "NAMEt", period: none}
- {name: hours, board: "NAMEhr:{period}", rolling: {of: hour, last: 24}}
- {name: days, board: "NAMEdr:{period}", rolling: {of: day, last: 2}}
`, "NAME", prefix)))
	must(t, err)
	h := quiet(t, func(o *Options) { o.Tiers = tiers{file: file} })
	must(t, h.applier.fenced(t.Context()))
	now := time.Now()
	record := &kafka.Message{TopicPartition: kafka.On("c", 0), Timestamp: now, TimestampType: kafka.LogAppendTime,
		Value: fmt.Appendf(nil, `{"order":"o1","class":"hour","member":"a","op":"incr","delta":3,"at":%d}`, now.UnixMilli())}
	for range 2 { // a repeat changes nothing
		_, err = h.applyBatch(t.Context(), &batch{round: noRewinds, polled: time.Now(), records: []*kafka.Message{record}})
		must(t, err)
	}
	var want []string
	for _, name := range []string{"hour", "day", "total", "hours", "days"} {
		b, err := file.Class(name).At(nil, now)
		must(t, err)
		if want = append(want, string(b.ID)); file.Class(name).Rolls() {
			next, err := b.Next()
			must(t, err)
			want = append(want, string(next.ID))
		}
	}
	for _, b := range want {
		equal(t, b, h.client.ZRangeWithScores(t.Context(), b, 0, -1).Val(), []redis.Z{{Member: "a", Score: 3}})
	}
	got := h.client.Keys(t.Context(), prefix+"*").Val()
	equal(t, "boards", slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

// A master dies with primes that its replica never got. They are in the log, so the new master gets them again, each once.
func TestFailoverLosesPrimes(t *testing.T) {
	t.Parallel()
	master := testkit.StartRedis(t, servers.RedisOptions{})
	replica := replicaOf(t, master)
	d := newDurable(t, master, testkit.Kafka(t))
	d.run(t)
	b, err := d.opts.Tiers.File().Class("days").At(map[string]string{"zone": d.zone}, time.Now())
	must(t, err)
	next, err := b.Next()
	must(t, err)
	sent := make(map[string]float64)
	send := func(from, to int) {
		for n := from; n < to; n++ {
			member := fmt.Sprint("p", n)
			sent[member] = float64(n + 1)
			d.produce(t, string(wire.Prime(next.ID, next.Period.Tag, testOf, member, sent[member], d.fixture.at)))
		}
	}
	awaitSent := func() {
		t.Helper()
		testkit.Eventually(t, testTimeout, func() error {
			got := make(map[string]float64)
			for _, row := range d.client.ZRangeWithScores(t.Context(), string(next.ID), 0, -1).Val() {
				got[row.Member.(string)] = row.Score
			}
			if known := d.client.HLen(t.Context(), d.opts.Names.OrdersKey(next.ID, wire.PrimeSet, 0)).Val() - 1; !maps.Equal(got, sent) || int(known) != len(sent) {
				return fmt.Errorf("%d primes are known, the board is %v", known, got)
			}
			return nil
		})
	}
	d.post(t, 30)
	send(0, 20)
	awaitSent()
	d.cut(t, replica)
	send(20, 40)
	awaitSent()
	must(t, master.Kill())
	d.at.moveTo(replica)
	d.awaitWhole(t)
	awaitSent()
	send(0, 40) // by another controller
	d.awaitCommitted(t, 30+20+20+40)
	awaitSent()
}

// A rolling class is taken away while its boards run, and comes again: those that lack gifts of meanwhile are incomplete, those of
// later periods are not. So are those that another writer has changed before this one had the class.
func TestRollingClassGoesAndComes(t *testing.T) {
	t.Parallel()
	start := func(w *rollingWorld, file *rooms.File) { w.tiers.file = file; w.rolling.settled.Store(nil) }
	for name, meanwhile := range map[string]func(t *testing.T, w *rollingWorld, all, without *rooms.File){
		"while the writer runs": func(t *testing.T, w *rollingWorld, all, without *rooms.File) {
			w.tiers.file = without
			w.gift(t, w.now, false)
			w.tiers.file = all
		},
		"and writers start": func(t *testing.T, w *rollingWorld, all, without *rooms.File) {
			start(w, without)
			w.gift(t, w.now, false)
			start(w, all)
		},
		"for posts": func(t *testing.T, w *rollingWorld, all, without *rooms.File) {
			w.tiers.file = without
			must(t, w.posts.applyPosts(t.Context(), nil))
			w.gift(t, w.now, false)
			w.tiers.file = all
		},
		"at this writer alone": func(t *testing.T, w *rollingWorld, all, without *rooms.File) {
			w.rolling.settled.Store(without)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRollingWorld(t, 2, 3)
			all, without := w.tiers.file, new(*w.tiers.file)
			without.Classes = slices.DeleteFunc(slices.Clone(all.Classes), func(c *rooms.Class) bool { return c.Name() == "last-3" })
			for p := w.dayOf(t, w.now).Period; len(w.closed) < 3; {
				var err error
				p, err = w.day.Calendar().Previous(p)
				must(t, err)
				w.closed[p.Tag] = true
			}
			w.gift(t, w.now, false)
			w.primeAll(t)
			equal(t, "incomplete", w.check(t), 0)
			meanwhile(t, w, all, without)
			w.gift(t, w.now, false)
			w.primeAll(t)
			equal(t, "incomplete, when it was away", w.check(t), 1)
			for day, incomplete := range []int{1, 0, 0, 0} {
				today := w.dayOf(t, w.now)
				w.closeDay(t, today)
				w.now = today.Period.End.Add(time.Hour)
				w.gift(t, w.now, false)
				w.primeAll(t)
				equal(t, fmt.Sprintf("incomplete, %d days later", day+1), w.check(t), incomplete)
			}
		})
	}
}

// primeAll does what the controller does at a look.
func (w *rollingWorld) primeAll(t *testing.T) {
	t.Helper()
	today := w.dayOf(t, w.now).Period
	next, err := w.day.Calendar().Next(today)
	must(t, err)
	for _, kind := range w.rolls {
		for _, p := range []class.Period{today, next} {
			b, err := kind.In(nil, p)
			must(t, err)
			first := w.client.HGet(t.Context(), w.opts.Names.OrdersKey(b.ID, wire.PrimeSet, 0), "").Val()
			if m := w.metaOf(t, b.ID); m.Buckets == 0 || !m.Primed && first == wire.Whole {
				w.prime(t, kind, p, false)
			}
		}
	}
}
