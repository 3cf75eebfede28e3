package origin

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
)

// Every change sets a's score to the seq, b's to its negative, and adds a member,
// so an answer with parts of different instants is inconsistent.
const change = `
local n = struct.unpack('>I8', redis.call('GETRANGE', KEYS[2], 10, 17)) + 1
redis.call('SETRANGE', KEYS[2], 10, struct.pack('>I8', n))
redis.call('ZADD', KEYS[1], n, 'a', -n, 'b', -1000000 - n, 'm' .. n)
return n`

// The board changes between any two commands of a transaction:
//
//	reader  MULTI          ZREVRANGE          ZCARD          GET seq
//	writer         change             change         change
//
// and still the answer is of one instant.
func TestAnswersAreOfOneInstant(t *testing.T) {
	b := newBoard(t)
	keys := []string{b.names().BoardKey(b.id), b.names().MetaKey(b.id)}
	changeBoard := func() { must(t, b.client.Eval(context.Background(), change, keys).Err()) }
	b.setMeta(t, testRun, 0)
	changeBoard()
	reader := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, DisableIdentity: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &slowConn{conn, changeBoard}, err
		}})
	defer reader.Close()
	b.Origin = New(reader, b.names(), WithTimeout(testTimeout))
	for range 20 {
		for name, read := range map[string]func() (rankcache.Stamp, float64, float64, error){
			"page": b.viaPage, "standings": b.viaStandings, "whole": b.viaWhole, "tops": b.viaTops, "sample": b.viaSample} {
			stamp, a, other, err := read()
			must(t, err)
			n := float64(stamp.Seq)
			if a != n || other != -n || stamp.Members != int(stamp.Seq)+2 {
				t.Fatalf("%s: seq %d, %d members, a has %v, b has %v", name, stamp.Seq, stamp.Members, a, other)
			}
		}
		stamps, err := b.Stamps(t.Context(), []rankcache.BoardID{b.id})
		must(t, err)
		if stamps[0].Seq == 0 || stamps[0].Members != int(stamps[0].Seq)+2 {
			t.Fatalf("stamps: seq %d, %d members", stamps[0].Seq, stamps[0].Members)
		}
	}
}

// slowConn sends one command at a time and calls before ahead of each.
type slowConn struct {
	net.Conn
	before func()
}

func (c *slowConn) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); {
		next := len(p)
		if i := bytes.Index(p[sent+1:], []byte("\r\n*")); i >= 0 {
			next = sent + 1 + i + 2
		}
		c.before()
		if n, err := c.Conn.Write(p[sent:next]); err != nil {
			return sent + n, err
		}
		sent = next
	}
	return len(p), nil
}

func (b board) viaPage() (rankcache.Stamp, float64, float64, error) {
	return scores(b.ask(rankcache.Query{Limit: 2}))
}

func (b board) viaTops() (rankcache.Stamp, float64, float64, error) {
	return scores(b.tops([]rankcache.BoardID{b.id, b.id}, 2)[1])
}

func (b board) viaStandings() (rankcache.Stamp, float64, float64, error) {
	a := b.ask(rankcache.Query{Members: []string{"a", "b"}})
	if a.Err != nil {
		return a.Stamp, 0, 0, a.Err
	}
	return a.Own[0].Stamp, a.Own[0].Score, a.Own[1].Score, nil
}

func (b board) viaSample() (rankcache.Stamp, float64, float64, error) {
	s, err := b.Sample(context.Background(), b.id, []string{"a", "b"}, 0)
	return s.Stamp, s.Given["a"], s.Given["b"], err
}

func scores(a rankcache.Answer) (rankcache.Stamp, float64, float64, error) {
	if a.Err == nil && len(a.Entries) != 2 {
		a.Err = fmt.Errorf("%d rows", len(a.Entries))
	}
	if a.Err != nil {
		return a.Stamp, 0, 0, a.Err
	}
	return a.Stamp, a.Entries[0].Score, a.Entries[1].Score, nil
}
