package files

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"rankcache"
	"rankcache/replay"
)

const minMemberBytes = 1 + scoreSize // the least number of bytes that a member takes in a file

type decoder struct {
	in  *bufio.Reader
	sum uint32 // of everything read except checksums
	buf []byte
}

const maxReserve = 1 << 20 // for how many members memory is reserved before any of them has come

// decode reads a board's file of size bytes. accept, if not nil, gets the header first, and its error is returned.
func decode(r io.Reader, size int64, board rankcache.BoardID, accept func(*replay.Saved) error) (replay.Saved, []rankcache.Entry, error) {
	d := &decoder{in: bufio.NewReaderSize(r, blockBytes)}
	s, err := d.headerOf(board, size)
	if err == nil && accept != nil {
		err = accept(&s)
	}
	if err != nil {
		return replay.Saved{}, nil, err
	}
	entries := make([]rankcache.Entry, 0, min(s.Members, maxReserve))
	for more := true; more; {
		if entries, more, err = d.block(entries); err != nil {
			return replay.Saved{}, nil, err
		}
		if len(entries) > s.Members || !more && len(entries) < s.Members {
			return replay.Saved{}, nil, fmt.Errorf("%w: %d members, %d in the header", ErrCorrupt, len(entries), s.Members)
		}
	}
	return s, entries, nil
}

func (d *decoder) headerOf(board rankcache.BoardID, size int64) (replay.Saved, error) {
	s, err := d.header()
	switch {
	case err != nil:
		return replay.Saved{}, err
	case s.Board != board:
		return replay.Saved{}, fmt.Errorf("%w: it is of board %s", ErrForeign, s.Board)
	case int64(s.Members) > size/minMemberBytes:
		return replay.Saved{}, fmt.Errorf("%w: %d bytes, too few for %d members", ErrTruncated, size, s.Members)
	}
	return s, nil
}

// idBytes returns the mean length of the ids of a file's members.
func idBytes(s *replay.Saved, size int64) int {
	if s.Members == 0 {
		return 0
	}
	return int(size/int64(s.Members)) - minMemberBytes + 1
}

func (d *decoder) header() (replay.Saved, error) {
	head, err := d.read(len(magic) + 8)
	switch {
	case errors.Is(err, ErrTruncated):
		return replay.Saved{}, fmt.Errorf("%w: no header", err)
	case err != nil:
		return replay.Saved{}, err
	case string(head[:len(magic)]) != magic:
		return replay.Saved{}, fmt.Errorf("%w: unknown format", ErrForeign)
	}
	v := binary.LittleEndian.Uint32(head[len(magic):])
	if v != version && v != versionData {
		return replay.Saved{}, fmt.Errorf("%w: %d, want %d or %d", ErrVersion, v, version, versionData)
	}
	body, err := d.part(binary.LittleEndian.Uint32(head[len(magic)+4:]), maxHeader)
	if err != nil {
		return replay.Saved{}, err
	}
	s, err := parseHeader(body)
	s.HasData = v == versionData
	return s, err
}

// block appends a block's members. more is false after the trailer.
func (d *decoder) block(entries []rankcache.Entry) (_ []rankcache.Entry, more bool, err error) {
	head, err := d.read(4)
	if err != nil {
		return nil, false, err
	}
	n := binary.LittleEndian.Uint32(head)
	if n == 0 {
		return entries, false, d.trailer(len(entries))
	}
	body, err := d.part(n, maxBlock)
	if err != nil {
		return nil, false, err
	}
	entries, err = members(entries, string(body))
	return entries, true, err
}

func (d *decoder) trailer(members int) error {
	body, err := d.part(8, 8)
	if err != nil {
		return err
	}
	if n := binary.LittleEndian.Uint64(body); n != uint64(members) {
		return fmt.Errorf("%w: %d members, %d in the trailer", ErrCorrupt, members, n)
	}
	if _, err := d.in.ReadByte(); err != io.EOF {
		return fmt.Errorf("%w: data after the trailer", ErrCorrupt)
	}
	return nil
}

// part reads n bytes, at most maxLen, and the checksum after them.
func (d *decoder) part(n uint32, maxLen int) ([]byte, error) {
	if n > uint32(maxLen) {
		return nil, fmt.Errorf("%w: a part of %d bytes, want at most %d", ErrCorrupt, n, maxLen)
	}
	body, err := d.read(int(n))
	if err != nil {
		return nil, err
	}
	var sum [4]byte
	if err := d.fill(sum[:]); err != nil {
		return nil, err
	}
	if got := binary.LittleEndian.Uint32(sum[:]); got != d.sum {
		return nil, fmt.Errorf("%w: checksum %08x, want %08x", ErrCorrupt, got, d.sum)
	}
	return body, nil
}

// read returns the next n bytes, which are valid until the next read.
func (d *decoder) read(n int) ([]byte, error) {
	if cap(d.buf) < n {
		d.buf = make([]byte, n)
	}
	d.buf = d.buf[:n]
	if err := d.fill(d.buf); err != nil {
		return nil, err
	}
	d.sum = crc32.Update(d.sum, castagnoli, d.buf)
	return d.buf, nil
}

func (d *decoder) fill(p []byte) error {
	_, err := io.ReadFull(d.in, p)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: unexpected end", ErrTruncated)
	}
	return err
}

func members(entries []rankcache.Entry, block string) ([]rankcache.Entry, error) {
	for len(block) > 0 {
		n, skip := uvarint(block)
		if skip <= 0 || n > maxMember || len(block)-skip < int(n)+scoreSize {
			return nil, fmt.Errorf("%w: malformed member", ErrCorrupt)
		}
		id, rest := block[skip:skip+int(n)], block[skip+int(n):]
		score := math.Float64frombits(binary.LittleEndian.Uint64([]byte(rest[:scoreSize])))
		if math.IsNaN(score) {
			return nil, fmt.Errorf("%w: the score of member %.40q is not a number", ErrCorrupt, id)
		}
		entries = append(entries, rankcache.Entry{Member: id, Score: score})
		block = rest[scoreSize:]
	}
	return entries, nil
}

// uvarint decodes a length; ids are short, so most have one byte.
func uvarint(s string) (uint64, int) {
	if len(s) > 0 && s[0] < 0x80 {
		return uint64(s[0]), 1
	}
	return binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
}
