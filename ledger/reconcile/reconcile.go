// Package reconcile (no public API) compares the ledger with the business's own books, order by order: what is missing
// in the ledger is posted as a command, what differs or is not in the books is reported, and nothing is overwritten.
package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankcache"
	"rankcache/class"
	"rankcache/ledger"
	"rankcache/wire"
)

const (
	// Settling is how old an order has to be: until then it may be under way, and the sides' times may differ so much.
	Settling = time.Minute
	slice    = 10 * time.Minute // the time that is compared at once. What is kept of it is 8 bytes a row.
	batch    = 1000             // how many orders are looked up at once
	// forgotten is the order life of a board that Redis lacks, sooner how much earlier an order is too old.
	forgotten, sooner = time.Hour, 2 * time.Minute
	// mostPosted is how many orders are posted within postAgain. More are hardly lost ones, but another ledger's books.
	mostPosted = 10_000
	postAgain  = time.Minute // when an order that is still missing is posted once more
)

// Post writes commands to the writers' topic and returns once they are acknowledged.
type Post func(ctx context.Context, commands []*wire.LedgerUpdate) error

// Reconciler compares one ledger with one set of books. Its methods belong to one goroutine.
type Reconciler struct {
	Books   *Books
	Store   *ledger.Store
	Metas   Metas
	Post    Post     // nil: missing orders are reported only
	Classes []string // whose boards are in the books; none: all boards of the ledger
	Most    int      // differences of a kind that a report has

	posted map[uint64]time.Time // when missing orders were posted, by hash
}

// Compare compares the orders of a time, in Unix milliseconds, and posts missing ones, once the ledger has all commands
// of it ([Poster.Reached]), in 8 bytes a row of ten minutes. Also with an error it returns the report so far.
func (r *Reconciler) Compare(ctx context.Context, from, to int64, now time.Time) (*Report, error) {
	report := newReport(from, to)
	r.forget(now)
	for at := from; at < to; at += slice.Milliseconds() {
		c := &comparison{r: r, report: report, from: at, to: min(at+slice.Milliseconds(), to), now: now}
		if err := c.run(ctx); err != nil {
			return report, err
		}
	}
	report.sort()
	return report, nil
}

// forget drops what may be posted again.
func (r *Reconciler) forget(now time.Time) {
	if r.posted == nil {
		r.posted = make(map[uint64]time.Time)
	}
	for order, at := range r.posted {
		if now.Sub(at) >= postAgain {
			delete(r.posted, order)
		}
	}
}

// comparison is that of one slice of time.
type comparison struct {
	r        *Reconciler
	report   *Report
	from, to int64
	now      time.Time
	boards   map[ledger.BoardClass][]rankcache.BoardID // that may have orders of a class
	shards   map[rankcache.BoardID][]rankcache.BoardID // of boards that are split
	orders   []uint64                                  // hashes of all that the books have
	batch    []*Row
}

func (c *comparison) run(ctx context.Context) (err error) {
	around := Settling.Milliseconds()
	if c.boards, err = c.r.Store.Active(ctx, c.from-around); err != nil {
		return fmt.Errorf("boards of the ledger: %w", err)
	}
	c.findShards()
	if err := c.r.Books.Each(ctx, c.from-around, c.to+around, func(row *Row) error { return c.book(ctx, row) }); err != nil {
		return err
	}
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	slices.Sort(c.orders)
	if err := c.r.Store.EachChange(ctx, c.from, c.to, c.r.Classes, c.change); err != nil {
		return fmt.Errorf("changes of the ledger: %w", err)
	}
	return nil
}

// findShards finds the boards that may be shards of the ones that the books name.
func (c *comparison) findShards() {
	c.shards = make(map[rankcache.BoardID][]rankcache.BoardID)
	for _, boards := range c.boards {
		for _, b := range boards {
			if whole, _, ok := class.CutShard(b); ok {
				c.shards[whole] = append(c.shards[whole], b)
			}
		}
	}
	for _, boards := range c.boards { // one that the ledger has itself is not split
		for _, b := range boards {
			delete(c.shards, b)
		}
	}
}

// boardsOf returns the boards on which the ledger may have a row's order.
func (c *comparison) boardsOf(row *Row) []rankcache.BoardID {
	if row.Board == "" {
		return c.boards[row.class()]
	}
	return append([]rankcache.BoardID{row.Board}, c.shards[row.Board]...)
}

func (c *comparison) book(ctx context.Context, row *Row) error {
	c.orders = append(c.orders, orderHash(row.Board, row.class(), row.Member, row.Order))
	if row.At < c.from || row.At >= c.to {
		return nil
	}
	c.report.Books++
	if err := row.check(); err != nil {
		d := row.differs(Bad)
		d.Why = err.Error()
		c.add(d)
		return nil
	}
	if c.batch = append(c.batch, row); len(c.batch) < batch {
		return nil
	}
	return c.lookUp(ctx)
}

func (c *comparison) add(d Difference) { c.report.add(c.r.Most, d) }

// orderHash names an order of a board, or of the boards of a class.
func orderHash(board rankcache.BoardID, of ledger.BoardClass, member, order string) uint64 {
	var room [256]byte
	if board != "" {
		of = ledger.BoardClass{}
	}
	key := room[:0]
	for _, part := range []string{string(board), of.Name, of.Dims, member, order} {
		key = append(append(key, part...), 0)
	}
	return xxhash.Sum64(key)
}

func (r *Row) differs(kind string) Difference {
	change := r.Change
	return Difference{Kind: kind, Order: r.Order, Board: r.Board, Class: r.Class, Dims: r.Dims, Member: r.Member, Books: &change}
}

// lookUp compares the orders of the batch with the ledger's.
func (c *comparison) lookUp(ctx context.Context) error {
	var keys []ledger.OrderKey
	for _, row := range c.batch {
		keys = append(keys, c.keys(row)...)
	}
	applied, aside, err := c.r.Store.Ordered(ctx, keys)
	if err != nil {
		return fmt.Errorf("orders of the ledger: %w", err)
	}
	var missing []*Row
	var isAside []bool
	for _, row := range c.batch {
		switch there, same := row.among(applied, c.keys(row)); {
		case there == nil:
			before, _ := row.among(aside, c.keys(row))
			missing, isAside = append(missing, row), append(isAside, before != nil)
		case !same:
			d := row.differs(Different)
			d.Ledger = changeOf(there)
			c.add(d)
		}
	}
	c.batch = c.batch[:0]
	return c.post(ctx, missing, isAside)
}

func (c *comparison) keys(row *Row) []ledger.OrderKey {
	boards := c.boardsOf(row)
	keys := make([]ledger.OrderKey, len(boards))
	for i, b := range boards {
		keys[i] = ledger.OrderKey{Board: b, Member: row.Member, Order: row.Order}
	}
	return keys
}

// among returns a change of the row's order, nil: none, and whether the books have it so. Times are not compared.
func (r *Row) among(changes map[ledger.OrderKey][]*wire.Update, keys []ledger.OrderKey) (there *wire.Update, same bool) {
	for _, k := range keys {
		for _, u := range changes[k] {
			there = u
			if is := changeOf(u); is.Op == r.Op && (is.Number == r.Number || u.Op == wire.OpSet && u.Score == r.Number) {
				return u, true
			}
		}
	}
	return there, false
}

// changeOf returns what an order did as the books would have it.
func changeOf(u *wire.Update) *Change {
	c := &Change{Op: u.Op.String(), At: u.At}
	switch u.Op {
	case wire.OpIncr, wire.OpBest:
		c.Number = u.Delta
	case wire.OpSet:
		c.Number = u.Form.Shown(u.Score)
	}
	return c
}

// post posts the missing orders that may be, and reports all.
func (c *comparison) post(ctx context.Context, missing []*Row, isAside []bool) error {
	if len(missing) == 0 {
		return nil
	}
	metas, err := c.metas(ctx, missing)
	if err != nil {
		return err
	}
	var commands []*wire.LedgerUpdate
	var differences []Difference
	for i, row := range missing {
		d := row.differs(Missing)
		if d.Why = c.why(row, c.meta(row, metas), isAside[i]); d.Why == "" {
			if d.Why, err = c.changedSince(ctx, row); err != nil {
				return err
			}
		}
		if d.Why == "" {
			d.Posted, commands = true, append(commands, row.command())
			c.r.posted[orderHash(row.Board, row.class(), row.Member, row.Order)] = c.now
		}
		differences = append(differences, d)
	}
	if len(commands) > 0 {
		if err := c.r.Post(ctx, commands); err != nil {
			return err
		}
	}
	for _, d := range differences {
		c.add(d)
	}
	return nil
}

// metas returns the states in Redis of the boards that the rows name, and of those of their classes.
func (c *comparison) metas(ctx context.Context, rows []*Row) (map[rankcache.BoardID]wire.Meta, error) {
	var boards []rankcache.BoardID
	for _, row := range rows {
		boards = append(boards, c.boardsOf(row)...)
	}
	slices.Sort(boards)
	return c.r.Metas(ctx, slices.Compact(boards))
}

// meta returns the row's board's state; of a class only the shortest order life, of shards how far any life is.
func (c *comparison) meta(row *Row, metas map[rankcache.BoardID]wire.Meta) (meta wire.Meta) {
	if row.Board != "" && len(c.shards[row.Board]) == 0 {
		return metas[row.Board]
	}
	for _, b := range c.boardsOf(row) {
		if row.Board != "" {
			meta.Life = max(meta.Life, metas[b].Life)
		}
		if life := metas[b].OrderLife; life > 0 && (meta.OrderLife == 0 || life < meta.OrderLife) {
			meta.OrderLife = life
		}
	}
	return meta
}

// why returns why a missing order is not posted, "" if it is.
func (c *comparison) why(row *Row, meta wire.Meta, isAside bool) string {
	life := time.Duration(meta.OrderLife) * time.Second // #nosec G115 -- days at most
	if life == 0 {
		life = forgotten
	}
	_, lately := c.r.posted[orderHash(row.Board, row.class(), row.Member, row.Order)]
	switch {
	case isAside:
		return InRankLost
	case meta.Life >= wire.LifeClosed:
		return Closed
	case row.At < c.now.Add(sooner-life).UnixMilli():
		return TooOld
	case c.r.Post == nil:
		return OnlyLooked
	case lately:
		return PostedLately
	case len(c.r.posted) >= mostPosted:
		return TooMany
	}
	return ""
}

// changedSince returns [Changed] if changes of the member come first that the order does not commute with, else "".
func (c *comparison) changedSince(ctx context.Context, row *Row) (why string, err error) {
	ops, err := c.r.Store.OpsSince(ctx, c.boardsOf(row), row.Member, row.At)
	if err != nil {
		return "", fmt.Errorf("later changes of %s: %w", row.Member, err)
	}
	own, _ := wire.ParseOp(row.Op) // checked
	for _, op := range ops {
		if !own.Commutes(op) && !op.Moves() && !(own.HasDelta() && op == wire.OpTrim) { // a trim takes no score
			return Changed, nil
		}
	}
	return "", nil
}

func (c *comparison) has(order uint64) bool {
	_, has := slices.BinarySearch(c.orders, order)
	return has
}

// change takes one change of the ledger, which the books should have.
func (c *comparison) change(u *wire.Update, of ledger.BoardClass) error {
	c.report.Ledger++
	if u.OrderID == "" {
		c.report.Unnamed++
		return nil
	}
	whole, _, _ := class.CutShard(u.Board) // which the books name of a shard
	on := func(b rankcache.BoardID) bool { return c.has(orderHash(b, of, u.Member, u.OrderID)) }
	if !on(u.Board) && !on(whole) && (of.Name == "" || !on("")) {
		c.add(Difference{Kind: Extra, Order: u.OrderID, Board: u.Board, Class: of.Name, Member: u.Member, Ledger: changeOf(u)})
	}
	return nil
}
