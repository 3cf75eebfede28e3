package final

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/wire"
)

// splitFixture is a board of 4 shards, of which one has no member.
type splitFixture struct {
	*fixture
	whole rankcache.BoardID
	rows  []rankcache.Entry // as they rank
	empty int               // the shard without a member
}

func newSplitFixture(t *testing.T, f *fixture) *splitFixture {
	t.Helper()
	s := &splitFixture{fixture: f, whole: f.board, empty: 2}
	template, _, _ := strings.Cut(string(f.board), ":")
	file, err := rooms.Parse([]byte("classes:\n- {name: paid, board: \"" + template + ":{zone}:{period}\", period: day, ledger: true, shards: 4}\n"))
	must(t, err)
	f.opts.Rooms = func() *rooms.File { return file }
	f.opts.Top = 5
	for i := 0; len(s.rows) < 12; i++ {
		member := fmt.Sprintf("m%02d", i)
		if shard := class.ShardOf(member, 4); shard != s.empty {
			s.rows = append([]rankcache.Entry{{Member: member, Score: 7}}, s.rows...) // equal scores rank by the member, last first
			s.set(t, shard, member, 7)
		}
	}
	return s
}

func (s *splitFixture) set(t *testing.T, shard int, member string, score float64) {
	t.Helper()
	s.board = class.ShardID(s.whole, shard)
	s.change(t, member, score, false)
}

// close sets the life of a shard.
func (s *splitFixture) close(t *testing.T, shard int) {
	t.Helper()
	key := s.names.MetaKey(class.ShardID(s.whole, shard))
	meta, err := wire.ParseMeta(s.redis.Get(t.Context(), key).Val())
	must(t, err)
	meta.Life = wire.LifeClosed
	must(t, s.redis.Set(t.Context(), key, wire.AppendMeta(nil, &meta), redis.KeepTTL).Err())
}

// TestFinalOfShards: the shards of a board have one final, once all are closed: its rows are those of all, ranked as one board.
func TestFinalOfShards(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		s := newSplitFixture(t, f)
		for _, shard := range []int{0, 1} {
			s.close(t, shard)
		}
		if _, err := s.Final(t.Context(), class.ShardID(s.whole, 0)); !errors.Is(err, ErrBehind) || !strings.Contains(err.Error(), ".s3") {
			t.Fatalf("while shard 3 is open: %v", err)
		}
		s.close(t, 3)
		if r, err := s.Final(t.Context(), class.ShardID(s.whole, 1)); r != nil || !errors.Is(err, ErrBehind) {
			t.Errorf("shard 1 before the first: record %s, %v", r, err)
		}
		var record []byte
		for _, shard := range []int{0, 1, 3} { // the first of them has the record
			r, err := s.Final(t.Context(), class.ShardID(s.whole, shard))
			must(t, err)
			if (r != nil) != (shard == 0) {
				t.Errorf("shard %d: record %s", shard, r)
			}
			if r != nil {
				record = r
			}
		}
		var got struct {
			Board rankcache.BoardID
			Seq   int
			File  string
			Top   []struct {
				Rank   int
				Member string
			}
		}
		must(t, json.Unmarshal(record, &got))
		if got.Board != s.whole || got.Seq != 12 || len(got.Top) != 5 || got.Top[4].Member != s.rows[4].Member || got.Top[4].Rank != 5 {
			t.Errorf("%s, want the first of %v", record, s.rows)
		}
		made, err := s.opts.Store.FinalAt(t.Context(), "paid", map[string]string{"zone": "7"}, "20261122", 0, 20)
		must(t, err)
		if made.Board != s.whole || made.Members != 12 || !cmp.Equal(made.Top, s.rows[:5]) || made.Sum != s.sum() {
			t.Errorf("%+v, want %v", made, s.rows)
		}
		at, err := url.Parse(got.File)
		must(t, err)
		data, err := os.ReadFile(at.Path)
		must(t, err)
		file, err := parquet.Read[finalFileRow[float64]](bytes.NewReader(data), int64(len(data)))
		must(t, err)
		for i, e := range s.rows {
			if file[i].Rank != int64(i+1) || file[i].Member != e.Member {
				t.Errorf("row %d of the file is %+v, want %+v", i, file[i], e)
			}
		}
	})
}

func (s *splitFixture) sum() (sum uint64) {
	for _, e := range s.rows {
		sum += wire.Hash(e.Member, e.Score)
	}
	return sum & wire.SumMask
}

// TestNoFinalWithoutAShard: a shard that Redis has lost, or that was changed past the writer, leaves the board without a final.
func TestNoFinalWithoutAShard(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		s := newSplitFixture(t, f)
		for _, shard := range []int{0, 1, 3} {
			s.close(t, shard)
		}
		lost := class.ShardID(s.whole, 1)
		must(t, s.redis.ZAdd(t.Context(), s.names.BoardKey(lost), redis.Z{Score: 9, Member: s.memberOf(1)}).Err())
		if _, err := s.Final(t.Context(), class.ShardID(s.whole, 0)); !isDiffers(err, lost) {
			t.Errorf("a score past the writer: %v", err)
		}
		must(t, s.redis.Del(t.Context(), s.names.BoardKey(lost), s.names.MetaKey(lost)).Err())
		if _, err := s.Final(t.Context(), class.ShardID(s.whole, 0)); !errors.Is(err, ErrBehind) {
			t.Errorf("without a shard: %v", err)
		}
		if made, err := s.opts.Store.FinalOf(t.Context(), s.whole, 0, 1); made != nil || err != nil {
			t.Errorf("a final is there: %v %v", made, err)
		}
	})
}

// memberOf returns a member of a shard.
func (s *splitFixture) memberOf(shard int) string {
	i := slices.IndexFunc(s.rows, func(e rankcache.Entry) bool { return class.ShardOf(e.Member, 4) == shard })
	return s.rows[i].Member
}

func isDiffers(err error, board rankcache.BoardID) bool {
	d, ok := errors.AsType[*Differs](err)
	return ok && d.Board == board
}
