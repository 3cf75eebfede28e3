package files

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rankcache"
)

// HotTop is the page of a hot board, and when it was last known to equal the origin.
type HotTop struct {
	*rankcache.Top
	CurrentAt time.Time
}

const (
	topsFile        = "hot.tops" // holds the pages of all hot boards: they are small and change together
	topsMagic       = "RANKTOPS"
	topsVersion     = 1
	topsVersionData = 2 // that of files whose rows may be joined with data

	maxTops = 10_000
	// maxTop is the longest page, in bytes.
	maxTop = 1024 + rankcache.MaxTop*(rankcache.MaxMemberLen+rankcache.MaxDataLen+3+scoreSize)
)

// SaveTops replaces the file of hot boards' pages, as [Store.Save] does that of a board.
func (s *Store) SaveTops(tops []HotTop) error {
	err := s.replace(topsFile, func(w io.Writer) error { return encodeTops(w, tops[:min(len(tops), maxTops)]) })
	if err != nil {
		return fmt.Errorf("save the pages of hot boards: %w: check the disk of %s", err, s.dir)
	}
	return nil
}

// LoadTops returns the pages that were saved last. The errors are those of [Store.Load].
func (s *Store) LoadTops() ([]HotTop, error) {
	tops, err := s.loadTops()
	if err != nil {
		return nil, fmt.Errorf("load the pages of hot boards from %s: %w", s.dir, err)
	}
	return tops, nil
}

func (s *Store) loadTops() ([]HotTop, error) {
	file, err := os.Open(filepath.Join(s.dir, topsFile))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return decodeTops(file)
}

// The file has a part for the number of pages, and one for each page.
func encodeTops(w io.Writer, tops []HotTop) error {
	e := &encoder{out: bufio.NewWriterSize(w, blockBytes)}
	version := uint32(topsVersion)
	if slices.ContainsFunc(tops, func(t HotTop) bool { return t.Data != nil }) {
		version = topsVersionData
	}
	head := binary.LittleEndian.AppendUint32([]byte(topsMagic), version)
	e.part(binary.LittleEndian.AppendUint32(head, uint32(len(tops)))) // #nosec G115 -- at most maxTops
	for i := range tops {
		body := appendTop(nil, &tops[i])
		e.write(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) // #nosec G115 -- at most maxTop
		e.part(body)
	}
	if e.err != nil {
		return e.err
	}
	return e.out.Flush()
}

func appendTop(dst []byte, t *HotTop) []byte {
	dst = appendState(appendText(dst, string(t.Board)), t.State)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(t.Members)), uint64(t.Life)) // #nosec G115 -- a count
	dst = appendTime(appendTime(dst, t.PublishedAt), t.CurrentAt)
	for _, e := range t.Entries {
		dst = binary.LittleEndian.AppendUint64(appendText(dst, rankcache.JoinData(e.Member, t.Data.Of(e.Member))), math.Float64bits(e.Score))
	}
	return dst
}

func decodeTops(r io.Reader) ([]HotTop, error) {
	d := &decoder{in: bufio.NewReaderSize(r, blockBytes)}
	head, err := d.part(uint32(len(topsMagic)+8), maxTop)
	if err != nil {
		return nil, err
	}
	version, n := binary.LittleEndian.Uint32(head[len(topsMagic):]), binary.LittleEndian.Uint32(head[len(topsMagic)+4:])
	switch {
	case string(head[:len(topsMagic)]) != topsMagic:
		return nil, fmt.Errorf("%w: unknown format", ErrForeign)
	case version != topsVersion && version != topsVersionData:
		return nil, fmt.Errorf("%w: %d, want %d or %d", ErrVersion, version, topsVersion, topsVersionData)
	case n > maxTops:
		return nil, fmt.Errorf("%w: %d pages, want at most %d", ErrCorrupt, n, maxTops)
	}
	var tops []HotTop
	for range n {
		head, err := d.read(4)
		if err != nil {
			return nil, err
		}
		body, err := d.part(binary.LittleEndian.Uint32(head), maxTop)
		if err != nil {
			return nil, err
		}
		top, err := parseTop(body)
		if err != nil {
			return nil, err
		}
		tops = append(tops, top)
	}
	return tops, nil
}

func parseTop(body []byte) (HotTop, error) {
	c := cursor{rest: body}
	t := HotTop{Top: &rankcache.Top{Board: rankcache.BoardID(c.text(rankcache.MaxBoardLen)), State: c.state(), Members: int(c.upTo(maxMembers)), Life: rankcache.Life(c.upTo(uint64(rankcache.LifeFinal)))}} // #nosec G115 -- limited
	t.PublishedAt, t.CurrentAt = c.time(), c.time()
	if c.bad || t.Board.Check() != nil {
		return HotTop{}, fmt.Errorf("%w: malformed page", ErrCorrupt)
	}
	var err error
	t.Entries, err = members(nil, string(c.rest))
	if err == nil && len(t.Entries) > rankcache.MaxTop {
		err = fmt.Errorf("%w: %d rows in a page", ErrCorrupt, len(t.Entries))
	}
	for i := range t.Entries {
		member, data := rankcache.SplitData(t.Entries[i].Member)
		t.Entries[i].Member, t.Data = member, t.Data.With(member, data)
	}
	return t, err
}
