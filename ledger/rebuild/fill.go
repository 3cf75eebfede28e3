package rebuild

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/ledger"
	"rankcache/wire"
)

const (
	// batchSize is how many members or order ids a pipeline has, and rowSize a command.
	batchSize, rowSize = 4000, 500
	// keysLast is when the temporary keys of a rebuild go that has died, after the last write to each.
	keysLast = time.Hour
)

// keys are a board's keys that a rebuild replaces, and temporary ones in the board's slot.
type keys struct {
	id     string
	names  []string // the sorted set, companions, the hashes of set 0, those of set 1
	of     []wire.Companion
	fields int // of all temporary hashes
}

func newKeys(n wire.Names, b rankcache.BoardID, buckets int, id string, of []wire.Companion) keys {
	k := keys{id: n.MetaKey(b) + ":rebuild:" + id, names: []string{n.BoardKey(b)}, of: of}
	for _, c := range of {
		k.names = append(k.names, n.CompanionKey(b, c))
	}
	for set := range 2 {
		for bucket := range buckets {
			k.names = append(k.names, n.OrdersKey(b, set, bucket))
		}
	}
	return k
}

const boardKey = 0 // the index of the sorted set

func (k *keys) companion(c wire.Companion) int { return 1 + slices.Index(k.of, c) }

// orders returns that of the first hash of order ids.
func (k *keys) orders() int { return 1 + len(k.of) }

func (k *keys) temporary(i int) string { return k.id + ":" + strconv.Itoa(i) }

func (k *keys) pairs() (pairs []string) {
	for i, name := range k.names {
		pairs = append(pairs, name, k.temporary(i))
	}
	return pairs
}

// begin makes the temporary hashes with the placeholder that the writers' script looks for.
func (k *keys) begin(ctx context.Context, client redis.UniversalClient) error {
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i := boardKey + 1; i < len(k.names); i++ {
			p.HSet(ctx, k.temporary(i), "", "")
			p.PExpire(ctx, k.temporary(i), keysLast)
			k.fields++
		}
		return nil
	})
	return err
}

// write writes a batch in one pipeline, with the expiry of each key or not at all, and counts the fields that are new.
func (k *keys) write(ctx context.Context, client redis.UniversalClient, batch map[int][]any) error {
	var fields []*redis.IntCmd
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, args := range batch {
			key := k.temporary(i)
			for part := range slices.Chunk(args, 2*rowSize) {
				if i == boardKey {
					p.Do(ctx, append([]any{"ZADD", key}, part...)...)
				} else {
					fields = append(fields, p.HSet(ctx, key, part...))
				}
			}
			p.PExpire(ctx, key, keysLast)
		}
		return nil
	})
	for _, n := range fields {
		k.fields += int(n.Val())
	}
	return err
}

func (k *keys) remove(ctx context.Context, client redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	all := make([]string, len(k.names))
	for i := range all {
		all[i] = k.temporary(i)
	}
	_ = client.Unlink(ctx, all...).Err() // they expire
}

// sender writes batches to Redis, one at a time, while the next one is read.
type sender struct {
	ctx     context.Context
	batches chan map[int][]any // arguments for each temporary key
	group   *errgroup.Group
}

// newSender returns a running sender. The caller closes it.
func (w *work) newSender(ctx context.Context) *sender {
	s := &sender{batches: make(chan map[int][]any, 2)}
	s.group, s.ctx = errgroup.WithContext(ctx)
	s.group.Go(func() error {
		for batch := range s.batches {
			if err := w.keys.write(s.ctx, w.opts.Redis, batch); err != nil {
				return fmt.Errorf("temporary keys in Redis: %w", err)
			}
		}
		return nil
	})
	return s
}

// send passes a batch on. Its error is that of an earlier one, or of the context.
func (s *sender) send(batch map[int][]any) error {
	select {
	case s.batches <- batch:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// close waits for what was sent, unless reading has failed.
func (s *sender) close(err error) error {
	close(s.batches)
	if sent := s.group.Wait(); sent != nil {
		return sent
	}
	return err
}

// rows are a board's members, joined with data, of a trimmed one those driven out, and those ever hidden.
type rows interface {
	Members(fn func(rankcache.Entry) error) error
	Trimmed(fn func(rankcache.Entry) error) error
	Hidings(fn func(member, veil string) error) error
}

// writeMembers writes the sorted set, members' data, the scores of all members of a trimmed board, and who is hidden.
func (w *work) writeMembers(ctx context.Context, v rows) error {
	w.done.Members, w.sum = 0, 0
	s := w.newSender(ctx)
	batch, scores := make(map[int][]any), w.keys.companion(wire.Scores)
	flush := func(atLeast int) (err error) {
		n := 0
		for _, args := range batch {
			n += len(args)
		}
		if n >= 2*atLeast && n > 0 {
			err, batch = s.send(batch), make(map[int][]any)
		}
		return err
	}
	keep := func(e rankcache.Entry) error {
		if w.rules.Trimmed {
			batch[scores] = append(batch[scores], e.Member, e.Score)
		}
		return flush(batchSize)
	}
	data, hidden, born := w.keys.companion(wire.Data), w.keys.companion(wire.Hidden), maps.Clone(w.born)
	err := v.Members(func(e rankcache.Entry) error {
		w.done.Members++
		w.sum = (w.sum + wire.Hash(e.Member, e.Score)) & wire.SumMask
		member, text := rankcache.SplitData(e.Member)
		if text != "" && !w.rules.Data {
			return fmt.Errorf("%w: member %.40q has data, and the board's class has none any more: set data: true again", ErrIncomplete, member)
		}
		if e.Member = member; text != "" {
			batch[data] = append(batch[data], member, text)
		}
		delete(born, member)
		batch[boardKey] = append(batch[boardKey], e.Score, member)
		return keep(e)
	})
	if err == nil && w.rules.Trimmed {
		err = v.Trimmed(keep)
	}
	if err == nil {
		err = w.hidden(v, born, func(member, veil string) error {
			batch[hidden] = append(batch[hidden], member, veil)
			return flush(batchSize)
		})
	}
	if err == nil {
		err = flush(0)
	}
	return s.close(err)
}

type orderWriter struct {
	*work
	*sender
	batch  map[int][]any
	n      int          // of the batch
	last   *wire.Update // its record is not ended: what it trimmed follows
	record []byte
}

// writeOrders writes the records of the changes behind w.place, if their order ids can still be known.
func (w *work) writeOrders(ctx context.Context, v *ledger.Snapshot) error {
	return w.writeOrdersOf(ctx, func(add func(*wire.Update) error) error {
		if w.era != "" { // commands of earlier lives are read again, too
			return v.AllChanges(w.since(), add)
		}
		return v.Changes(w.place, w.since(), add)
	})
}

// writeOrdersOf writes the records of changes, which each calls a function for.
func (w *work) writeOrdersOf(ctx context.Context, each func(add func(*wire.Update) error) error) error {
	o := &orderWriter{work: w, batch: make(map[int][]any)}
	o.sender = w.newSender(ctx)
	err := each(o.add)
	if err == nil {
		err = o.end()
	}
	if err == nil && o.n > 0 {
		err = o.send(o.batch)
	}
	return o.close(err)
}

func (o *orderWriter) add(u *wire.Update) error {
	if u.Op == wire.OpTrim {
		if o.last != nil && o.last.OrderID == u.OrderID {
			o.record = wire.AppendTrim(o.record, u)
		}
		return nil
	}
	if err := o.end(); err != nil || u.OrderID == "" {
		return err
	}
	number := o.rules.Form.Raw(u.Delta)
	if o.log != nil {
		number = u.Delta // as the topic has it
	}
	if u.Op == wire.OpSet {
		if number = u.Score; o.rules.Ties {
			number = rankcache.ScoreInteger.Shown(number)
		}
	}
	if u.Op.Moves() {
		_, serial, _ := wire.ParseHide(u.Op.String(), u.OrderID, u.Member)
		number = float64(serial)
	}
	o.last, o.record = u, wire.AppendOrder(nil, u, number, o.rules.Data)
	return nil
}

// end adds the last record to the batch, and sends a batch that is full.
func (o *orderWriter) end() error {
	u := o.last
	if u == nil {
		return nil
	}
	turn := min(o.meta.Turn, max(uint64(u.At)/span(&o.meta), o.meta.Turn-1)) // #nosec G115 -- Unix milliseconds
	key := o.keys.orders() + int(turn%2)*int(o.meta.Buckets) + wire.OrderBucket(u.OrderID, o.meta.Buckets)
	o.batch[key] = append(o.batch[key], wire.OrderField(u.OrderID), o.record)
	o.last = nil
	o.done.Orders++
	if o.n++; o.n < batchSize {
		return nil
	}
	err := o.send(o.batch)
	o.batch, o.n = make(map[int][]any), 0
	return err
}
