package rankcache

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
)

const MaxDataLen = 256 // the longest data of a member, in bytes

var ErrData = errors.New("bad data") // reports data of a member that is too long or not plain text

// CheckData returns an error that wraps [ErrData] unless data is up to [MaxDataLen] bytes of UTF-8 without controls.
func CheckData(data string) error {
	if data != "" && !PlainText(data, MaxDataLen) {
		return fmt.Errorf("%w %.40q: %d bytes, want at most %d of UTF-8 without control characters", ErrData, data, len(data), MaxDataLen)
	}
	return nil
}

// JoinData returns a member and its data as one text, which is the member alone if it has none: the form that
// a board's checksum is made of, and in which whole boards are read, kept in files and loaded.
func JoinData(member, data string) string {
	if data == "" {
		return member
	}
	return member + "\x00" + data
}

// SplitData is the inverse of [JoinData].
func SplitData(text string) (member, data string) {
	if i := strings.IndexByte(text, 0); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// Data is what members have beside their scores. It is immutable; a change shares most memory. Nil has nothing.
type Data struct {
	root    *dataNode
	members int
	bytes   int
}

// dataNode has texts of members, or once they are too many children by the next bits of their hashes.
type dataNode struct {
	texts []string // as JoinData makes them
	next  *[1 << dataBits]*dataNode
}

const (
	dataBits   = 4
	dataLeaf   = 16 // texts of a node
	dataMemory = 48 // about what a text takes beside its bytes
)

var dataSeed = maphash.MakeSeed()

// Of returns the member's data, "" if it has none. It does not allocate.
func (d *Data) Of(member string) string {
	if d == nil || d.root == nil {
		return ""
	}
	n := d.root
	for h := maphash.String(dataSeed, member); n != nil && n.next != nil; h >>= dataBits {
		n = n.next[h%(1<<dataBits)]
	}
	if n == nil {
		return ""
	}
	for _, text := range n.texts {
		if is(text, member) {
			return text[len(member)+1:]
		}
	}
	return ""
}

func is(text, member string) bool {
	return len(text) > len(member) && text[len(member)] == 0 && text[:len(member)] == member
}

// Len returns how many members have data.
func (d *Data) Len() int {
	if d == nil {
		return 0
	}
	return d.members
}

// Bytes returns how much memory the data takes, estimated.
func (d *Data) Bytes() int {
	if d == nil {
		return 0
	}
	return d.bytes
}

// With returns what d is with that data of a member; "" removes it. It keeps copies of the strings.
func (d *Data) With(member, data string) *Data {
	had := d.Of(member)
	if had == data {
		return d
	}
	next := Data{}
	if d != nil {
		next = *d
	}
	text := JoinData(member, data)
	if data != "" {
		next.members++
		next.bytes += len(text) + dataMemory
		text = strings.Clone(text)
	}
	if had != "" {
		next.members--
		next.bytes -= len(member) + 1 + len(had) + dataMemory
	}
	if next.members == 0 {
		return nil
	}
	next.root = next.root.with(maphash.String(dataSeed, member), 0, member, text)
	return &next
}

// with returns a node with the member's text; the member alone removes it. shift is how many bits are used above.
func (n *dataNode) with(hash uint64, shift int, member, text string) *dataNode {
	if n != nil && n.next != nil {
		next := *n.next
		i := hash >> shift % (1 << dataBits)
		next[i] = next[i].with(hash, shift+dataBits, member, text)
		return &dataNode{next: &next}
	}
	var texts []string
	if n != nil {
		for _, other := range n.texts {
			if !is(other, member) {
				texts = append(texts, other)
			}
		}
	}
	if len(text) > len(member) {
		texts = append(texts, text)
	}
	if len(texts) <= dataLeaf || shift+dataBits > 64 {
		return &dataNode{texts: texts}
	}
	split := &dataNode{next: new([1 << dataBits]*dataNode)}
	for _, text := range texts {
		member, _ := SplitData(text)
		hash := maphash.String(dataSeed, member)
		i := hash >> shift % (1 << dataBits)
		split.next[i] = split.next[i].with(hash, shift+dataBits, member, text)
	}
	return split
}
