package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"rankcache"
)

// maxTag is longer than any tag of a period, and maxClass than any class's name, in bytes.
const maxTag, maxClass = 40, 40

// LedgerUpdate is one applied change as it travels on the ledger's topic: the update, and of which kind its board is.
// Class is "" for a board of no class, and then so are the others.
type LedgerUpdate struct {
	Update
	Class string
	Dims  map[string]string // by the name of the dimension
	// Era is the server on which the writer has found the change, as [Meta] names it; "" if that is not known.
	Era string
	// Past tells that the board is in another run there: this one may have led to it.
	Past bool
	Tag  string // of the period; "" if the class has none
}

// AppendLedgerUpdate appends u in the wire form: that of [AppendUpdate] with the score that is shown and raw beside it,
// and three more fields at its end. Where the two differ the version is 3, which programs refuse that would take the
// score for the raw one, 4 where the member or the command has data, which older ones would lose, 5 where the member
// is or was hidden, which older ones would show: veil is what Redis has of that ([Hiding.Text]), and 6 where it is
// forgotten. Commands have no raw. [DecodeLedgerUpdate] reads a valid u back unchanged, but for a Form that changes nothing.
func AppendLedgerUpdate(dst []byte, u *LedgerUpdate) []byte {
	version, shown := byte(2), u.Form.Shown(u.Score)
	if shown != u.Score && u.Scored() {
		version = 3
	}
	if u.Data != "" || u.Given != "" { // and so a score
		version = 4
	}
	veil := u.Hiding.Text(u.Score)
	if veil != "" {
		version = 5
	}
	if u.Op == OpForget {
		version = 6
	}
	dst = u.append(dst, version, shown, u.Delta, u.Seq != 0)
	if veil != "" {
		dst = append(append(append(dst[:len(dst)-1], `,"veil":"`...), veil...), `"}`...)
	}
	if u.Class == "" {
		return dst
	}
	dst = AppendString(append(dst[:len(dst)-1], `,"class":`...), u.Class)
	dst = AppendDims(append(dst, `,"dims":`...), u.Dims)
	dst = AppendString(append(dst, `,"tag":`...), u.Tag)
	if u.By != "" {
		dst = append(append(dst, `,"by":`...), u.By...)
	}
	if u.Era != "" {
		dst = AppendString(append(dst, `,"era":`...), u.Era)
	}
	if u.Past {
		dst = append(dst, `,"past":true`...)
	}
	if u.Given != "" {
		dst = append(base64.RawURLEncoding.AppendEncode(append(dst, `,"given64":"`...), []byte(u.Given[1:])), '"')
	}
	return append(dst, '}')
}

// AppendDims appends dimensions as a JSON object, by name, so that equal ones are the same bytes.
func AppendDims(dst []byte, dims map[string]string) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(dims)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(append(AppendString(dst, name), ':'), dims[name])
	}
	return append(dst, '}')
}

// erasField begins a record of eras.
const erasField = `{"eras":`

// AppendEras appends a record of the ledger's topic that names the servers which a writer takes for the masters now.
// Writers send it to each partition.
func AppendEras(dst []byte, eras []string) []byte {
	return append(AppendString(append(dst, erasField...), strings.Join(eras, " ")), '}')
}

// DecodeEras reads what [AppendEras] writes. It reports false for any other record.
func DecodeEras(data []byte) (eras []string, ok bool) {
	var list struct {
		Eras string `json:"eras"`
	}
	if !bytes.HasPrefix(data, []byte(erasField)) || DecodeStrict(data, &list) != nil {
		return nil, false
	}
	eras = strings.Fields(list.Eras)
	return eras, len(eras) > 0 && !slices.ContainsFunc(eras, func(era string) bool { return !isEra(era) })
}

func isEra(text string) bool {
	return len(text) == EraLen && strings.Trim(text, "0123456789abcdef") == ""
}

// classField begins what a [LedgerUpdate] has behind its update.
var classField = []byte(`,"class":`)

// DecodeLedgerUpdate decodes one record of the ledger's topic into u, as [DecodeUpdate] does; a record without run and
// seq is refused, as its place in the board's history is unknown.
func DecodeLedgerUpdate(data []byte, u *LedgerUpdate) error {
	*u = LedgerUpdate{}
	rest, c := data, ledgerClass{}
	if i := bytes.LastIndex(data, classField); i > 0 && len(data) <= MaxUpdateLen && c.read(data[i+1:]) {
		rest = append(data[:i:i], '}') // the flat form, which is decoded fast
	} else if err := c.unmarshal(data); err != nil {
		return err
	}
	var w rawUpdate
	if err := w.decode(rest, &u.Update); err != nil {
		return err
	}
	if !w.hasRaw && IsTied(&u.Update) {
		u.Form = rankcache.ScoreInteger
	}
	if u.Seq == 0 || u.Run == 0 || u.Seq > math.MaxInt64 || u.Run > math.MaxInt64 {
		return &BadUpdate{"run", fmt.Errorf("run %d, seq %d: want both, from 1 to 2^63-1", u.Run, u.Seq)}
	}
	return u.setClass(&c)
}

// NewerUpdate returns board, run and seq of a record of the ledger's topic whose version is a later one than
// [DecodeLedgerUpdate] reads. It reports false for any other record, and if one of them can't be read.
func NewerUpdate(data []byte) (u Update, newer bool) {
	var w struct {
		V     uint64            `json:"v"`
		Board rankcache.BoardID `json:"board"`
		Run   uint64            `json:"run"`
		Seq   uint64            `json:"seq"`
	}
	err := json.Unmarshal(data, &w)
	return Update{Board: w.Board, Run: w.Run, Seq: w.Seq}, err == nil && w.V > 6 && w.Board != "" && w.Run > 0 && w.Seq > 0
}

// ledgerClass are the fields of a [LedgerUpdate] beside its update.
type ledgerClass struct {
	Class *string           `json:"class"`
	Dims  map[string]string `json:"dims"`
	Tag   string            `json:"tag"`
	By    map[string]string `json:"by"`
	Given *string           `json:"given64"`
	Era   string            `json:"era"`
	Past  bool              `json:"past"`
}

// read reads the fields in the order in which they are written. It reports
// false for anything else, such as further fields.
func (c *ledgerClass) read(fields []byte) bool {
	return DecodeStrict(append([]byte{'{'}, fields...), c) == nil && c.Class != nil
}

func (c *ledgerClass) unmarshal(data []byte) error {
	*c = ledgerClass{}
	if len(data) > MaxUpdateLen {
		return &BadUpdate{"size", fmt.Errorf("%d bytes, want at most %d", len(data), MaxUpdateLen)}
	}
	if err := json.Unmarshal(data, c); err != nil {
		return &BadUpdate{"json", badJSON(err)}
	}
	return nil
}

func (u *LedgerUpdate) setClass(c *ledgerClass) error {
	if c.Class == nil || *c.Class == "" {
		return nil
	}
	if u.Class, u.Dims, u.Tag = *c.Class, c.Dims, c.Tag; len(c.By) > 0 {
		u.By = string(AppendDims(nil, c.By))
	}
	if u.Era, u.Past = c.Era, c.Past; !isEra(u.Era) {
		u.Era = ""
	}
	if len(u.Class) > maxClass || len(u.Tag) > maxTag {
		return &BadUpdate{"class", errors.New("the class's name or the period's tag is too long")}
	}
	if c.Given == nil {
		return nil
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(*c.Given)
	if u.Given = "\x00" + string(given); err == nil {
		err = rankcache.CheckData(u.Given[1:])
	}
	switch {
	case u.Op.Removes():
		return &BadUpdate{"data", fmt.Errorf("%s has data", u.Op)}
	case err != nil:
		return &BadUpdate{"data", err}
	}
	return nil
}
