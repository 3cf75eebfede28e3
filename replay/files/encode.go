package files

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"

	"rankcache"
	"rankcache/replay"
)

const (
	blockBytes = 64 << 10 // from when on a block is written, maxBlock the most that is read: one member more fits
	maxBlock   = blockBytes + maxMember + 16
	maxMember  = 64 << 10 // the longest member id, in bytes
	scoreSize  = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encoder writes a file. The first error ends all writing; finish returns it.
type encoder struct {
	out     *bufio.Writer
	sum     uint32 // of everything written except checksums
	block   []byte
	members int
	err     error
}

func encode(w io.Writer, s *replay.Saved, pieces iter.Seq[[]rankcache.Entry]) error {
	e := &encoder{out: bufio.NewWriterSize(w, blockBytes), block: make([]byte, 0, blockBytes+1024)}
	e.header(s)
	for piece := range pieces {
		for i := range piece {
			e.add(&piece[i])
		}
		if e.err != nil {
			return e.err
		}
	}
	return e.finish(s.Members)
}

func (e *encoder) header(s *replay.Saved) {
	body := appendHeader(nil, s)
	v := uint32(version)
	if s.HasData {
		v = versionData
	}
	head := binary.LittleEndian.AppendUint32([]byte(magic), v)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(body)))
	e.part(append(head, body...))
}

func (e *encoder) add(entry *rankcache.Entry) {
	if len(entry.Member) > maxMember && e.err == nil {
		e.err = fmt.Errorf("member %.40q has %d bytes, want at most %d", entry.Member, len(entry.Member), maxMember)
	}
	e.block = appendText(e.block, entry.Member)
	e.block = binary.LittleEndian.AppendUint64(e.block, math.Float64bits(entry.Score))
	e.members++
	if len(e.block) >= blockBytes {
		e.flush()
	}
}

func (e *encoder) flush() {
	if len(e.block) > 0 {
		e.write(binary.LittleEndian.AppendUint32(nil, uint32(len(e.block))))
		e.part(e.block)
		e.block = e.block[:0]
	}
}

// part writes p and the checksum of everything so far but checksums: a CRC over data and its CRC is always the same.
func (e *encoder) part(p []byte) {
	e.write(p)
	if e.err == nil {
		_, e.err = e.out.Write(binary.LittleEndian.AppendUint32(nil, e.sum))
	}
}

func (e *encoder) write(p []byte) {
	if e.err == nil {
		e.sum = crc32.Update(e.sum, castagnoli, p)
		_, e.err = e.out.Write(p)
	}
}

func (e *encoder) finish(want int) error {
	if e.err == nil && e.members != want {
		e.err = fmt.Errorf("%d members to save, %d in the header", e.members, want)
	}
	e.flush()
	e.part(binary.LittleEndian.AppendUint64(make([]byte, 4), uint64(e.members)))
	if e.err != nil {
		return e.err
	}
	return e.out.Flush()
}
