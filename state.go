package rankcache

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var ErrState = errors.New("bad state") // reports a state that is not written as [State.String] writes it

// State identifies one state of a board. Two boards whose states are equal, sums included, have the same members with
// the same scores; a seq alone can't tell that, because a Redis that fails over gives seqs out again.
type State struct {
	Run    uint64 // tells the lives of a board apart; a later life has a higher run. 0 is unknown.
	Seq    uint64 // the board's count of applied changes, 0 if unknown
	Sum    uint64 // the checksum over all members and scores ([rankcache/wire.Hash]), below 2^48, if HasSum is set
	HasSum bool
}

const sumBits = 48 // the length of a checksum

const MaxStateLen = 2*len("18446744073709551615-") + sumBits/4 // the length of the longest text of a [State], in bytes

// String returns "<run>-<seq>-<sum as 12 hex digits>", without digits behind the second sign if the sum is unknown.
func (s State) String() string {
	var room [MaxStateLen]byte
	return string(s.AppendState(room[:0]))
}

// AppendState appends the result of String.
func (s State) AppendState(dst []byte) []byte {
	dst = append(strconv.AppendUint(dst, s.Run, 10), '-')
	dst = append(strconv.AppendUint(dst, s.Seq, 10), '-')
	if s.HasSum {
		for shift := sumBits - 4; shift >= 0; shift -= 4 {
			dst = append(dst, "0123456789abcdef"[s.Sum>>shift&15])
		}
	}
	return dst
}

// ParseState is the inverse of [State.String]. The error wraps [ErrState].
func ParseState(text string) (s State, err error) {
	run, rest, _ := strings.Cut(text, "-")
	seq, sum, ok := strings.Cut(rest, "-")
	var errs [3]error
	s.Run, errs[0] = strconv.ParseUint(run, 10, 64)
	s.Seq, errs[1] = strconv.ParseUint(seq, 10, 64)
	if s.HasSum = sum != ""; s.HasSum {
		s.Sum, errs[2] = strconv.ParseUint(sum, 16, sumBits)
	}
	if !ok || errors.Join(errs[:]...) != nil || s.String() != text {
		return State{}, fmt.Errorf("%w %.60q: want <run>-<seq>-<sum>, as the header Rankcache-State has it", ErrState, text)
	}
	return s, nil
}

// Before reports whether s is of an earlier run than other, or of an earlier seq of the same run.
func (s State) Before(other State) bool {
	return s.Run < other.Run || s.Run == other.Run && s.Seq < other.Seq
}

// SameSum returns whether both states have a sum and it is the same.
func (s State) SameSum(other State) bool { return s.HasSum && other.HasSum && s.Sum == other.Sum }
