package wire

import (
	"encoding/json"
	"fmt"

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
	// Top are the highest raw scores, the highest first, which are shown in the form. Members are joined with their
	// data ([rankcache.JoinData]).
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

// EncodeFinal returns f in the wire form, of version 2 if it has raw scores. It fails only if a
// score is no finite number.
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
