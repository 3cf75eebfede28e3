package operate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/rooms"
)

type bypassOptions struct {
	cli.AdminClient
	all, off bool
	length   time.Duration
	by       string
}

func newRoomsBypassCommand() *cobra.Command {
	o := &bypassOptions{}
	cmd := &cobra.Command{
		Use:   "bypass [BOARD]",
		Short: "Have Redis answer a board, or all, instead of local copies, for a while",
		Long: `The kill switch: within 2 s no sidecar answers the board, or any board, from memory;
Redis answers, by the few calls at a time that it always gets. Copies are kept up to
date meanwhile, so that the end costs nothing. It ends by itself. Who set it,
and when, is shown by rooms list, /status, the log and the operator's page.
--all, --off, --for and --by are taken from the command line alone.`,
		Example: `  rankcache rooms bypass 1_2_3 --for 10m
  rankcache rooms bypass 1_2_3 --off
  rankcache rooms bypass --all --for 10m --by alice
  rankcache rooms bypass --all --off`,
		Args: cli.AtMostOneArg,
	}
	o.Register(cmd, true)
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "all boards; with --off, every bypass, those of single boards too")
	flags.BoolVar(&o.off, "off", false, "end it now")
	flags.DurationVar(&o.length, "for", 10*time.Minute, "how long, up to 24h; another request replaces the last one")
	flags.StringVar(&o.by, "by", "", "name of the operator, as all sidecars show it; empty: user and host")
	cli.MarkTyped(flags, "all", "off", "for", "by")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.run(cmd, rankcache.BoardID(strings.Join(args, "")))
	}
	return cmd
}

func (o *bypassOptions) run(cmd *cobra.Command, board rankcache.BoardID) error {
	if o.all == (board != "") {
		return cli.Usagef("want a board or --all")
	}
	if o.off {
		query, done := url.Values{"all": {"true"}}, "no board is bypassed any more on any sidecar"
		if !o.all {
			query, done = url.Values{"board": {string(board)}}, fmt.Sprintf("board %s is no longer bypassed on any sidecar", board)
		}
		return o.Delete(cmd, "/rooms/bypass?"+query.Encode(), done)
	}
	request, err := o.request(board)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	return cli.Show(&o.AdminClient, cmd, http.MethodPost, "/rooms/bypass", request, func(to io.Writer, b *rooms.Bypass) error {
		_, err := fmt.Fprintln(to, bypassText(b))
		return err
	})
}

// request returns the request as JSON, after the sidecar's own check.
func (o *bypassOptions) request(board rankcache.BoardID) ([]byte, error) {
	if o.length%time.Second != 0 {
		return nil, errors.New("--for: want whole seconds")
	}
	text, err := json.Marshal(struct {
		Board rankcache.BoardID `json:"board,omitempty"`
		All   bool              `json:"all,omitzero"`
		For   int               `json:"for_s"`
		By    string            `json:"by"`
	}{board, o.all, int(o.length / time.Second), cmp.Or(o.by, userAndHost())})
	if err == nil {
		_, err = rooms.ParseBypassRequest(text, time.Now())
	}
	return text, err
}

func userAndHost() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return fmt.Sprintf("%.60s@%.60s", name, cmp.Or(host, "unknown"))
}

// bypassText names the bypassed boards, the end of the bypass, and the user who set it.
func bypassText(b *rooms.Bypass) string {
	verb := "is"
	if b.All {
		verb = "are"
	}
	return fmt.Sprintf("%s %s bypassed until %s, since %s, by %s: Redis answers", b, verb,
		b.Until.Format(time.RFC3339), b.From.Format(time.RFC3339), b.By)
}
