package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"rankcache"
)

// Final is the result of a board that is closed, as it travels on the topic of finals.
type Final struct {
	Board rankcache.BoardID
	Class string
	Dims  map[string]string // by the name of the dimension
	Tag   string            // of the period, which is from Start until End, in Unix milliseconds
	Start int64
	End   int64
	// State is the board's last one, and Members how many it has.
	rankcache.State
	Members int
	// Top are the best raw scores, shown in the form. Members are joined with their data ([rankcache.JoinData]).
	Top  []rankcache.Entry
	Form rankcache.ScoreForm
	File string // URL of the file with all members
}

type finalJSON struct {
	V       int               `json:"v"`
	Board   rankcache.BoardID `json:"board"`
	Class   string            `json:"class"`
	Dims    map[string]string `json:"dims"`
	Tag     string            `json:"tag"`
	Start   int64             `json:"start"`
	End     int64             `json:"end"`
	Run     uint64            `json:"run"`
	Seq     uint64            `json:"seq"`
	Sum     string            `json:"sum"`
	Members int               `json:"members"`
	Top     []finalRow        `json:"top"`
	File    string            `json:"file"`
}

type finalRow struct {
	Rank   int      `json:"rank"`
	Member string   `json:"member"`
	Score  float64  `json:"score"`
	Raw    *float64 `json:"raw,omitempty"` // nil: the score
	Data   string   `json:"data,omitempty"`
}

// EncodeFinal returns f's wire form, version 2 with raw scores. It fails only for a score that is not finite.
func EncodeFinal(f *Final) ([]byte, error) {
	out := finalJSON{1, f.Board, f.Class, f.Dims, f.Tag, f.Start, f.End, f.Run, f.Seq, fmt.Sprintf("%012x", f.Sum), f.Members, make([]finalRow, len(f.Top)), f.File}
	for i, e := range f.Top {
		row := &out.Top[i]
		*row = finalRow{Rank: i + 1, Score: f.Form.Shown(e.Score)}
		row.Member, row.Data = rankcache.SplitData(e.Member)
		if row.Score != e.Score {
			out.V, row.Raw = 2, &f.Top[i].Score
		}
	}
	return json.Marshal(out)
}

// DecodeFinal decodes data into f. The form is one in which all rows are shown as they are in the record.
func DecodeFinal(data []byte, f *Final) error {
	var in finalJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("final: %w", err)
	}
	sum, err := strconv.ParseUint(in.Sum, 16, 64)
	if err = errors.Join(err, in.Board.Check()); err != nil || in.V < 1 || in.V > 2 || in.Class == "" || sum > SumMask || len(in.Top) > in.Members {
		return fmt.Errorf("final of %.80q, version %d: not one of version 1 or 2: %w", in.Board, in.V, cmp.Or(err, errors.New("class, sum or rows are wrong")))
	}
	*f = Final{Board: in.Board, Class: in.Class, Dims: in.Dims, Tag: in.Tag, Start: in.Start, End: in.End, State: rankcache.State{Run: in.Run, Seq: in.Seq, Sum: sum, HasSum: true},
		Members: in.Members, File: in.File}
	for _, row := range in.Top {
		raw := row.Score
		if row.Raw != nil {
			raw = *row.Raw
		}
		f.Top = append(f.Top, rankcache.Entry{Member: rankcache.JoinData(row.Member, row.Data), Score: raw})
	}
	shown := func(form rankcache.ScoreForm) bool {
		for i, row := range in.Top {
			if form.Shown(f.Top[i].Score) != row.Score {
				return false
			}
		}
		return true
	}
	for !shown(f.Form) {
		if f.Form++; f.Form > rankcache.ScoreInteger|rankcache.ScoreLowest {
			return fmt.Errorf("final of %q: its raw scores are not those that are shown", in.Board)
		}
	}
	return nil
}
