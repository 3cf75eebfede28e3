package writer

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

//go:embed order.lua
var orderSource string

// orderScript is the one place where a score changes. Its keys carry the board
// as hash tag, so that a cluster runs it in the board's slot.
type orderScript struct {
	*redis.Script
	names wire.Names
	life  string // of a new board, in milliseconds
}

func newOrderScript(names wire.Names, life time.Duration) orderScript {
	return orderScript{redis.NewScript(orderSource), names, strconv.FormatInt(life.Milliseconds(), 10)}
}

func (s orderScript) keys(c *Command) []string {
	return []string{s.names.BoardKey(c.Board), s.names.SeqKey(c.Board), s.names.OrderKey(c.Board, c.Order)}
}

func (s orderScript) args(c *Command) []any {
	number := strconv.FormatFloat(c.Number, 'g', -1, 64) // reads back as the same double
	return []any{c.Op.String(), c.Member, number, strconv.FormatInt(c.At, 10), s.life}
}

// Outcome is what became of one command that Redis answered: an update, which a
// repeat of the order gets again unchanged whatever else the repeat says, or a
// refusal.
type Outcome struct {
	Update    wire.Update
	Duplicate bool // the order was applied before
	Refusal   *Refusal
}

// outcome reads the script's answer to c.
func outcome(c *Command, answer string) (Outcome, error) {
	if answer == "!" {
		return Outcome{Refusal: &Refusal{"overflow", errors.New("the score would not be a finite number; nothing was changed")}}, nil
	}
	if answer == "" || answer[0] != '+' && answer[0] != '=' {
		return Outcome{}, badRecord(answer)
	}
	u, err := readRecord(answer[1:])
	u.Board, u.Order = c.Board, c.Order
	return Outcome{Update: u, Duplicate: answer[0] == '='}, err
}

// readRecord reads what the script keeps under an order.
func readRecord(record string) (u wire.Update, err error) {
	f := strings.SplitN(record, " ", 6)
	if len(f) != 6 {
		return u, badRecord(record)
	}
	var errs [5]error
	u.Seq, errs[0] = strconv.ParseUint(f[0], 10, 64)
	u.Op, errs[1] = wire.ParseOp(f[1])
	u.Delta, errs[2] = strconv.ParseFloat(f[2], 64)
	u.Score, errs[3] = strconv.ParseFloat(f[3], 64)
	u.At, errs[4] = strconv.ParseInt(f[4], 10, 64)
	u.Member = f[5]
	u.Score += 0 // Redis knows -0, updates do not
	if errors.Join(errs[:]...) != nil {
		return u, badRecord(record)
	}
	return u, nil
}

func badRecord(record string) error {
	return &Refusal{"type", fmt.Errorf("an order key holds %.80q, which is no record: check that nothing else uses the key names", record)}
}
