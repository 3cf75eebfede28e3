package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/wire"
)

func NewMembersCommand() *cobra.Command {
	members := &cobra.Command{
		Use:   "members",
		Short: "Find members, hide them on boards, restore them, and forget them",
		Example: `  rankcache members hide --board 1_2_3 --member 1000123 --reason "bot, ticket 4711"
  rankcache members restore --board 1_2_3 --member 1000123 --reason "appeal accepted"
  rankcache members find --member 1000123 --redis redis://redis:6379
  rankcache members forget --member 1000123 --reason "request 17" --redis redis://redis:6379`,
	}
	members.AddCommand(newFindCommand(), newForgetCommand(), cli.FromConfig(newMoveCommand(wire.OpHide)), cli.FromConfig(newMoveCommand(wire.OpRestore)))
	return members
}

type move struct {
	Board  string            `json:"board,omitempty"`
	Class  string            `json:"class,omitempty"`
	Dims   map[string]string `json:"dims,omitempty"`
	All    bool              `json:"all,omitempty"`
	Member string            `json:"member"`
	Reason string            `json:"reason"`
}

type moved struct {
	Board  string   `json:"board"`
	Member string   `json:"member"`
	Score  *float64 `json:"score"`
	Hidden bool     `json:"hidden"`
	State  string   `json:"state"`
	// Of all boards of a class:
	Class   string `json:"class"`
	Boards  int    `json:"boards"`
	Refused []struct{ Board, Code, Detail string }
}

func newMoveCommand(op wire.Op) *cobra.Command {
	c, ask := &cli.AdminClient{}, &move{}
	cmd := &cobra.Command{
		Use:   "hide",
		Short: "Take a member out of sight on a board, while its points go on counting",
		Long: `Take a member out of sight on a board. From the next update on it is on no page and in
nobody's rank, on all sidecars. Its points go on counting, so that it returns with them. The
writer logs who was hidden, and why. A member that is not on the board can be hidden ahead. With --all it is hidden on all boards of the class,
also on those of periods to come.`,
		Example: `  rankcache members hide --board 1_2_3 --member 1000123 --reason "bot, ticket 4711"
  rankcache members hide --class gift-day --all --member 1000123 --reason "bot, ticket 4711"
  rankcache members hide --class gift-day --dim zone=7 --member 1000123 --reason "bot" --scores writer:8973 --write-token-file /run/secrets/write`,
		Args: cli.NoArgs,
	}
	if op == wire.OpRestore {
		cmd.Use, cmd.Short, cmd.Long = "restore", "Bring a hidden member back on a board, with its points", `Bring a hidden member back on a board, with the points that it has by now.`
		cmd.Example = `  rankcache members restore --board 1_2_3 --member 1000123 --reason "appeal accepted"`
	}
	flags := cmd.Flags()
	flags.StringVar(&ask.Board, "board", "", "`id` of the board")
	flags.StringVar(&ask.Class, "class", "", "`name` of the board's class, instead of --board: its board of now")
	flags.StringToStringVar(&ask.Dims, "dim", nil, "dimensions of the board of the class, as `name=value`")
	flags.BoolVar(&ask.All, "all", false, "on all boards of the class, of now and to come")
	flags.StringVar(&ask.Member, "member", "", "`id` of the member")
	flags.StringVar(&ask.Reason, "reason", "", "why: `text` of up to 200 bytes, for the writer's log")
	c.RegisterWriter(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case (ask.Board == "") == (ask.Class == ""):
			return cli.Usagef("want --board or --class")
		case ask.All && (ask.Class == "" || len(ask.Dims) > 0):
			return cli.Usagef("--all: want --class, without --dim")
		case ask.Member == "" || ask.Reason == "":
			return cli.Usagef("want --member and --reason")
		}
		body, _ := json.Marshal(ask) // strings
		return cli.Show(c, cmd, http.MethodPost, "/v1/members:"+op.String(), body, printMoved)
	}
	return cmd
}

func printMoved(to io.Writer, m *moved) error {
	if m.Class != "" {
		return printMovedAll(to, m)
	}
	is := "is on the board"
	if m.Hidden {
		is = "is hidden"
	}
	score := "no score"
	if m.Score != nil {
		score = fmt.Sprint("score ", *m.Score)
	}
	_, err := fmt.Fprintf(to, "board %s: member %s %s, with %s; state %s\n", m.Board, m.Member, is, score, m.State)
	return err
}

func printMovedAll(to io.Writer, m *moved) error {
	is := "is restored"
	if m.Hidden {
		is = "is hidden"
	}
	_, err := fmt.Fprintf(to, "class %s: member %s %s on %d boards, and on those to come\n", m.Class, m.Member, is, m.Boards)
	for _, r := range m.Refused {
		_, err = fmt.Fprintf(to, "not on %s: %s: %s\n", r.Board, r.Code, r.Detail)
	}
	return err
}
