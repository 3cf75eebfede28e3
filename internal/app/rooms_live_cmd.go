package app

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"rankcache/rooms"
)

func newRoomsListCommand() *cobra.Command {
	c := &adminClient{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Print what a running sidecar follows, and where each entry comes from",
		Example: `  rankcache rooms list
  kubectl exec app-0 -c rankcache -- rankcache rooms list -o json`,
		Args: NoArgs,
	}
	c.register(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		body, err := c.ask(cmd.Context(), http.MethodGet, "/rooms", nil)
		if err != nil {
			return err
		}
		return c.print(cmd.OutOrStdout(), body, printRooms)
	}
	return cmd
}

func newRoomsSetCommand() *cobra.Command {
	c := &adminClient{}
	var mode, match string
	var boards []string
	cmd := &cobra.Command{
		Use:   "set [UID]",
		Short: "Make a room or a board super-hot, hot or blocked on all sidecars",
		Long: `Tell one sidecar, which acts at once and tells all others through Redis within 2 s.
A rooms file that names the same room or pattern wins.`,
		Example: `  rankcache rooms set 88 --mode super-hot
  rankcache rooms set 88 --mode super-hot --boards 1_2_3,1_2_4
  rankcache rooms set --match '9_*' --mode blocked`,
		Args: atMostOneArg,
	}
	c.register(cmd, true)
	cmd.Flags().StringVar(&mode, "mode", "", "super-hot, hot or blocked")
	cmd.Flags().StringVar(&match, "match", "", "board or `pattern` over boards, instead of a room")
	cmd.Flags().StringSliceVar(&boards, "boards", nil, "the room's `boards`; without it Redis says which run in it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		entry, err := roomEntry(args, match, mode, boards)
		if err != nil {
			return Usagef("%w", err)
		}
		body, err := c.ask(cmd.Context(), http.MethodPost, "/rooms", entry)
		if err != nil {
			return err
		}
		return c.print(cmd.OutOrStdout(), body, printSet)
	}
	return cmd
}

func newRoomsDeleteCommand() *cobra.Command {
	c := &adminClient{}
	var match string
	cmd := &cobra.Command{
		Use:   "delete [UID]",
		Short: "Take back what was set for a room or a board",
		Example: `  rankcache rooms delete 88
  rankcache rooms delete --match '9_*'`,
		Args: atMostOneArg,
	}
	c.register(cmd, true)
	cmd.Flags().StringVar(&match, "match", "", "board or `pattern` over boards, instead of a room")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query := url.Values{}
		switch uid := strings.Join(args, ""); {
		case (uid == "") == (match == ""):
			return Usagef("want a uid or --match")
		case uid != "":
			query.Set("uid", uid)
		default:
			query.Set("match", match)
		}
		_, err := c.ask(cmd.Context(), http.MethodDelete, "/rooms?"+query.Encode(), nil)
		return err
	}
	return cmd
}

// roomEntry checks an entry before it is sent, and returns it as JSON.
func roomEntry(args []string, match, mode string, boards []string) ([]byte, error) {
	text, err := json.Marshal(struct {
		UID    string   `json:"uid,omitempty"`
		Match  string   `json:"match,omitempty"`
		Mode   string   `json:"mode"`
		Boards []string `json:"boards,omitzero"`
	}{strings.Join(args, ""), match, mode, boards})
	if err != nil {
		return nil, err
	}
	_, err = rooms.ParseEntry(text)
	return text, err
}
