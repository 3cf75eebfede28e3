package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rankcache"
	"rankcache/sidecar"
	"rankcache/sidecar/encode"
	"rankcache/wire"
)

// parseBatch reads {"members":["…"]} with 1 to [rankcache.MaxTop] members.
func parseBatch(data []byte) ([]string, *encode.Problem) {
	var req struct {
		Members []string `json:"members"`
	}
	if err := wire.DecodeWithoutNull(data, &req); err != nil {
		return nil, encode.BadArgument("members", fmt.Sprintf(`want {"members":["id",…]}: %.100v`, err))
	}
	return req.Members, checkBatch(req.Members)
}

// list reads the members of a batch, with the caller among them.
func (c *call) list(data []byte) *encode.Problem {
	members, p := parseBatch(data)
	if me := c.member[0]; p == nil && me != "" && !slices.Contains(members, me) {
		members = append(members, me)
		p = checkBatch(members)
	}
	c.query().Members = members
	return p
}

func checkBatch(members []string) *encode.Problem {
	if n := len(members); n < 1 || n > rankcache.MaxTop {
		return encode.BadArgument("members", fmt.Sprintf("%d members, want 1 to %d", n, rankcache.MaxTop))
	}
	for _, m := range members {
		if err := rankcache.CheckMember(m); err != nil {
			return encode.BadArgument("members", err.Error())
		}
	}
	return nil
}

type boardBody struct {
	Board    string  `json:"board"`
	Room     *string `json:"room"`
	Order    *string `json:"order"`
	Start    *int    `json:"start"`
	Limit    *int    `json:"limit"`
	Me       *string `json:"me"`
	Around   *int    `json:"around"`
	Gap      bool    `json:"gap"`
	Profiles bool    `json:"profiles"`
	Trend    bool    `json:"trend"`

	RankMode   *string `json:"rank_mode"`
	Percentile bool    `json:"percentile"`
}

// parseBoards reads {"boards":[{"board":"…"}]} with 1 to [sidecar.MaxBatch] boards. Each becomes a call of its own.
func parseBoards(data []byte) ([]call, *encode.Problem) {
	if len(data) > maxBoardsBody {
		return nil, &encode.Problem{Code: encode.CodeBodyTooLarge, Detail: "want at most 32 KiB"}
	}
	var req struct {
		Boards []boardBody `json:"boards"`
	}
	if err := wire.DecodeWithoutNull(data, &req); err != nil {
		return nil, encode.BadArgument("boards", fmt.Sprintf(`want {"boards":[{"board":"id"},…]}: %.100v`, err))
	}
	if n := len(req.Boards); n < 1 || n > sidecar.MaxBatch {
		return nil, encode.BadArgument("boards", fmt.Sprintf("%d boards, want 1 to %d", n, sidecar.MaxBatch))
	}
	calls := make([]call, len(req.Boards))
	for i := range req.Boards {
		if p := req.Boards[i].fill(&calls[i]); p != nil {
			return nil, inBoard(p, i)
		}
	}
	return calls, nil
}

// inBoard tells which board of a batch a problem is of.
func inBoard(p *encode.Problem, i int) *encode.Problem {
	p.Detail = fmt.Sprintf("boards[%d]: %s", i, p.Detail)
	return p
}

// fill makes c the call that a GET of the page would be.
func (b *boardBody) fill(c *call) *encode.Problem {
	*c = call{route: routeTop, args: args{profiles: b.Profiles, trend: b.Trend}}
	*c.query() = rankcache.Query{Board: rankcache.BoardID(b.Board), Limit: defaultLimit, Gap: b.Gap, Percentile: b.Percentile}
	if err := c.query().Board.Check(); err != nil {
		return encode.BadArgument("board", err.Error())
	}
	for _, v := range []struct {
		arg  int
		text *string
	}{{argRoom, b.Room}, {argOrder, b.Order}, {argStart, digits(b.Start)}, {argLimit, digits(b.Limit)}, {argMe, b.Me}, {argAround, digits(b.Around)}, {argRankMode, b.RankMode}} {
		if v.text == nil {
			continue
		}
		if p := c.setArg(v.arg, *v.text); p != nil {
			return p
		}
	}
	if p := c.checkScores(); p != nil {
		return p
	}
	return c.checkMe()
}

// digits returns a number as an argument has it.
func digits(n *int) *string {
	if n == nil {
		return nil
	}
	text := strconv.Itoa(*n)
	return &text
}

type coding uint8 // a content coding that answers can be packed in

const (
	codingZstd coding = iota
	codingGzip
	codings
	codingNone = codings
)

func (c coding) String() string { return [...]string{"zstd", "gzip", "identity"}[c] }

// packer compresses bodies. It may be used concurrently.
type packer struct {
	zstd *zstd.Encoder // EncodeAll keeps no state between calls
	gzip sync.Pool
}

func newPacker() (*packer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(128<<10))
	return &packer{zstd: z}, err
}

func (p *packer) pack(c coding, plain []byte) []byte {
	if c == codingZstd {
		return p.zstd.EncodeAll(plain, nil)
	}
	w, _ := p.gzip.Get().(*gzip.Writer)
	if w == nil {
		w, _ = gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	}
	defer p.gzip.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(plain) // a bytes.Buffer takes everything
	_ = w.Close()
	return bytes.Clone(b.Bytes())
}

// accepted picks the coding for an Accept-Encoding: zstd, gzip, none. Weights other than 0 are not compared.
func accepted(header []byte) coding {
	best := codingNone
	for len(header) > 0 {
		var item []byte
		item, header, _ = bytes.Cut(header, []byte(","))
		name, params, _ := bytes.Cut(item, []byte(";"))
		for c := range best {
			if bytes.EqualFold(bytes.TrimSpace(name), []byte(c.String())) && !refused(params) {
				best = c
				break
			}
		}
	}
	return best
}

// refused reports whether the parameters of a coding give it the weight 0.
func refused(params []byte) bool {
	q, ok := bytes.CutPrefix(bytes.ToLower(bytes.TrimSpace(params)), []byte("q="))
	return ok && len(bytes.Trim(q, "0.")) == 0
}
