package resp

import (
	"errors"
	"slices"
	"strings"

	"rankcache"
	"rankcache/sidecar"
)

// A board that is split into shards has no key in Redis, so that nothing about it is passed on: its reads are answered
// of all shards, those that are not here from Redis, or refused.

const (
	splitInTransaction = "-ERR RANKCACHE board is split into shards: it can't be read in a transaction\r\n"
	splitForm          = "-ERR RANKCACHE board is split into shards: this form or command is not answered for such boards\r\n"
	splitAway          = "-MASTERDOWN RANKCACHE a shard of the board can't be read\r\n"
)

// allForms know each form that is answered here, whatever Redis does.
var allForms = &facts{rangeOptions: true, rankScore: true, multiScore: true}

func (s *Server) isSplit(b rankcache.BoardID) bool { return b != "" && s.reader.Tiers().Shards(b) > 0 }

func (s *Server) isSplitKey(key []byte) bool {
	if len(key) > maxKey {
		return false
	}
	board, ok := s.cfg.Names.BoardOfKey(text(key))
	return ok && s.isSplit(board)
}

// refusesSplit returns the error for a command with a split board's key, else "". Redis tells which are keys.
func (s *Server) refusesSplit(v verb, args [][]byte) string {
	switch {
	case v == watch || !slices.ContainsFunc(args[1:], s.isSplitKey): // what is watched is not read then
		return ""
	case v == script:
		return splitForm
	}
	reply, err := s.guard.askKeys(args)
	if err != nil {
		return awayReply(err)
	}
	keys, _ := decode(reply).([]any)
	if slices.ContainsFunc(keys, func(k any) bool { return s.isSplitKey([]byte(anyKey(k))) }) {
		return splitForm
	}
	return ""
}

func (c *session) handleSplit(v verb, cmd *command, board rankcache.BoardID) error {
	q, ok := allForms.parseForm(v, cmd.args)
	switch {
	case c.isPinned():
		c.refused = c.multi
		return c.respond(v, sourceRefused, splitInTransaction)
	case !ok:
		return c.respond(v, sourceRefused, splitForm)
	}
	q.board, q.split = board, true
	_, err := c.answerRead(&q, 0)
	return err
}

// splitRefusal returns the error of a read that is not answered.
func splitRefusal(err error) string {
	if errors.Is(err, rankcache.ErrUnavailable) || errors.Is(err, sidecar.ErrOverloaded) {
		return splitAway
	}
	reason := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, err.Error())
	return "-ERR RANKCACHE board is split into shards: " + reason + "\r\n"
}
