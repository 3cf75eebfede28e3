package operate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/controller"
	"rankcache/internal/cli"
	"rankcache/internal/roomsync"
	"rankcache/rooms"
)

func NewRoomsCommand() *cobra.Command {
	rooms := &cobra.Command{
		Use:   "rooms",
		Short: "Check rooms files; list, set, delete and bypass rooms of running sidecars",
		Example: `  rankcache rooms check rooms.yaml --kafka kafka:9092
  rankcache rooms list`,
	}
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Check whether a rooms file would be accepted",
		Long: `Read a rooms file with the code that rankcache serve reads it with, and print
its rooms and boards; of each class the board of the period that runs, when that ends, for how long
boards linger in memory, when they expire, and the next board; and how many boards are in memory. A file that serve would refuse is an error with its line, super-hot boards without --kafka among them.`,
		Example: "  rankcache rooms check rooms.yaml --kafka kafka:9092",
		Args:    cli.OneArg,
	}
	output := cli.OutputFlag(check.Flags(), "text")
	var o cli.Options
	check.Flags().StringVar(&o.Kafka, "kafka", "", "Kafka `brokers` of the sidecars, which are not called; empty: none, and what needs Kafka is refused")
	o.RegisterLog(check.Flags())
	check.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.KafkaKeys, err = cli.LoadConfig(cmd); err != nil {
			return err
		}
		return checkRooms(cmd.OutOrStdout(), args[0], *output, &o, time.Now())
	}
	rooms.AddCommand(check, cli.FromConfig(newRoomsListCommand()), cli.FromConfig(newRoomsSetCommand()), cli.FromConfig(newRoomsDeleteCommand()), cli.FromConfig(newRoomsBypassCommand()))
	return rooms
}

// RoomsSummary is the stable JSON of rooms check.
type RoomsSummary struct {
	Rooms   map[string]int      `json:"rooms"`  // by mode
	Rules   int                 `json:"rules"`  // entries under boards:
	Boards  []rankcache.BoardID `json:"boards"` // super-hot boards named in the file, whole, without those of classes
	Classes []classSummary      `json:"classes"`
	Memory  boardsInMemory      `json:"in_memory"`
}

// boardsInMemory counts the super-hot boards that the file names, shards apart.
type boardsInMemory struct {
	Running   int `json:"running"`   // those without a period among them
	Upcoming  int `json:"upcoming"`  // more, before all periods begin at once
	Lingering int `json:"lingering"` // more, after all have ended at once
}

func (m *boardsInMemory) add(c *rooms.Class) {
	if c.Mode != rooms.ModeSuperHot {
		return
	}
	m.Running += c.Boards()
	if c.Calendar().Periodic() {
		m.Upcoming, m.Lingering = m.Upcoming+c.Boards(), m.Lingering+c.Lingering()
	}
}

func (m *boardsInMemory) String() string {
	if m.Running == 0 {
		return ""
	}
	return fmt.Sprintf("In memory: %d boards, before periods begin up to %d more, and after they have ended up to %d more that linger. rankcache plan computes the memory.\n", m.Running, m.Upcoming, m.Lingering)
}

// classSummary is one class and its boards; dimensions stand in braces.
type classSummary struct {
	Name    string    `json:"name"`
	Period  string    `json:"period"`
	TZ      string    `json:"tz"`
	Mode    string    `json:"mode"`
	Board   string    `json:"board"`             // of the running period; "": no season runs
	Shards  int       `json:"shards,omitempty"`  // of each board, if it is split
	Ends    time.Time `json:"ends,omitzero"`     // when the period does
	Lingers string    `json:"lingers,omitempty"` // how long behind the grace it is in memory
	Expires string    `json:"expires"`           // when a board does
	Next    string    `json:"next,omitempty"`    // board of the next period
	Begins  time.Time `json:"begins,omitzero"`   // when the next period does
	Durable bool      `json:"durable,omitempty"`
	// Rolling tells what boards are sums of, MostPrimes how many members they may have for a period to give all sums.
	Rolling    string `json:"rolling,omitempty"`
	MostPrimes int    `json:"most_primes,omitempty"`
}

// expiryText tells when the boards of a class expire, or those without a class (nil).
func expiryText(c *rooms.Class) string {
	switch {
	case c != nil && c.Calendar().Periodic():
		return c.Keep.String() + " after the period"
	case c != nil && c.Keep > 0:
		return c.Keep.String() + " after the last change"
	}
	return "never, or by --board-life of the writers"
}

func checkRooms(to io.Writer, path, output string, o *cli.Options, now time.Time) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read rooms file: %w", err)
	}
	parsed, err := rooms.Parse(data)
	if err == nil {
		err = o.CheckLog(parsed)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := RoomsSummary{Rooms: map[string]int{}, Rules: len(parsed.Rules),
		Boards: []rankcache.BoardID{}, Classes: []classSummary{}}
	for _, room := range parsed.Rooms {
		s.Rooms[room.Mode.String()]++
	}
	for _, c := range parsed.Classes {
		s.Classes = append(s.Classes, summarize(c, now))
		s.Memory.add(c)
	}
	tiers := parsed.Resolve(nil)
	for _, b := range tiers.Boards(rooms.ModeSuperHot) {
		s.Memory.Running++
		if whole := tiers.Whole(b); !slices.Contains(s.Boards, whole) {
			s.Boards = append(s.Boards, whole)
		}
	}
	return cli.PrintAs(to, output, s, func(to io.Writer) error {
		fmt.Fprintf(to, "%s is good: %d rooms (%d super-hot, %d hot, %d blocked), %d board rules, %d classes\n", path,
			len(parsed.Rooms), s.Rooms["super-hot"], s.Rooms["hot"], s.Rooms["blocked"], s.Rules, len(s.Classes))
		if err := printClasses(to, s.Classes); err != nil {
			return err
		}
		for _, c := range s.Classes {
			if c.Shards > 0 {
				fmt.Fprintf(to, "%s is split: each of its boards is %d boards in Redis and in memory, .s0 to .s%d.\n", c.Name, c.Shards, c.Shards-1)
			}
			if c.Rolling != "" {
				fmt.Fprintf(to, "%s is rolling (%s): two changes more for each increment, and one prime for each member in a period, at most %d at --prime-rate %d of the controller.\n",
					c.Name, c.Rolling, c.MostPrimes, controller.DefaultPrimeRate)
			}
		}
		if o.LogInRedis() {
			fmt.Fprintln(to, "Log of changes: Redis.")
		}
		_, err := fmt.Fprintf(to, "Boards of no class expire %s.\n%s", expiryText(nil), &s.Memory)
		return err
	})
}

func summarize(c *rooms.Class, now time.Time) classSummary {
	calendar := c.Calendar()
	s := classSummary{Name: c.Name(), Period: calendar.String(), TZ: calendar.Zone(), Mode: c.Mode.String(), Expires: expiryText(c), Durable: c.Durable, Shards: c.Shards()}
	if running, err := calendar.At(now); err == nil {
		s.Board, s.Ends = c.Pattern(running), running.End
		if linger := c.LingerOf(running); linger > 0 {
			s.Lingers = linger.String()
		}
	}
	if next, err := calendar.Following(now); err == nil {
		s.Next, s.Begins = c.Pattern(next), next.Start
	}
	if c.Rolls() {
		s.Rolling, s.MostPrimes = c.Rolling.String(), int(calendar.Length().Seconds())*controller.DefaultPrimeRate
	}
	return s
}

func printClasses(to io.Writer, classes []classSummary) error {
	if len(classes) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLASS\tPERIOD\tMODE\tBOARD\tENDS\tLINGERS\tEXPIRES\tDURABLE\tNEXT BOARD")
	for _, c := range classes {
		ends, next := "never", c.Next
		switch {
		case !c.Ends.IsZero():
			ends = c.Ends.Format(time.RFC3339)
		case c.Board == "":
			c.Board, ends = "-", "-"
		}
		if next != "" && !c.Begins.Equal(c.Ends) { // a season that does not follow at once
			next += " from " + c.Begins.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%v\t%s\n", c.Name, c.Period, c.Mode, c.Board, ends, cmp.Or(c.Lingers, "-"), c.Expires, c.Durable, next)
	}
	return table.Flush()
}

func newRoomsListCommand() *cobra.Command {
	return cli.Showing(&cobra.Command{
		Use:   "list",
		Short: "Print what a running sidecar follows, and where each entry comes from",
		Example: `  rankcache rooms list
  kubectl exec app-0 -c rankcache -- rankcache rooms list -o json`,
	}, "/rooms", printRooms)
}

func newRoomsSetCommand() *cobra.Command {
	c := &cli.AdminClient{}
	var mode, match string
	var boards []string
	cmd := &cobra.Command{
		Use:   "set [UID]",
		Short: "Make a room or a board super-hot, hot or blocked on all sidecars",
		Long: `Set it on one sidecar, which applies it at once; the others follow within 2 s, through Redis.
A rooms file that names the same room or pattern wins.`,
		Example: `  rankcache rooms set 88 --mode super-hot
  rankcache rooms set 88 --mode super-hot --boards 1_2_3,1_2_4
  rankcache rooms set --match '9_*' --mode blocked`,
		Args: cli.AtMostOneArg,
	}
	c.Register(cmd, true)
	cmd.Flags().StringVar(&mode, "mode", "", "super-hot, hot or blocked")
	cmd.Flags().StringVar(&match, "match", "", "board or `pattern` over boards, instead of a room")
	cmd.Flags().StringSliceVar(&boards, "boards", nil, "the room's `boards`; without it they are read from Redis")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		entry, err := roomEntry(args, match, mode, boards)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		return cli.Show(c, cmd, http.MethodPost, "/rooms", entry, printSet)
	}
	return cmd
}

func newRoomsDeleteCommand() *cobra.Command {
	c := &cli.AdminClient{}
	var match string
	cmd := &cobra.Command{
		Use:   "delete [UID]",
		Short: "Take back what was set for a room or a board",
		Example: `  rankcache rooms delete 88
  rankcache rooms delete --match '9_*'`,
		Args: cli.AtMostOneArg,
	}
	c.Register(cmd, true)
	cmd.Flags().StringVar(&match, "match", "", "board or `pattern` over boards, instead of a room")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		query, what := url.Values{}, "room "+strings.Join(args, "")
		switch uid := strings.Join(args, ""); {
		case (uid == "") == (match == ""):
			return cli.Usagef("want a uid or --match")
		case uid != "":
			query.Set("uid", uid)
		default:
			query.Set("match", match)
			what = "boards " + match
		}
		return c.Delete(cmd, "/rooms?"+query.Encode(), "what was set for "+what+" is taken back on all sidecars")
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

// RoomsAnswer has the printed fields of GET /rooms.
type RoomsAnswer struct {
	Rooms    []roomsync.RoomRow     `json:"rooms"`
	Boards   []roomsync.RuleRow     `json:"boards"`
	Bypasses []rooms.Bypass         `json:"bypasses"`
	File     roomsync.FileStatus    `json:"file"`
	Dynamic  roomsync.DynamicStatus `json:"dynamic"`
}

func printRooms(to io.Writer, a *RoomsAnswer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tMODE\tSOURCE\tBOARDS")
	for _, r := range a.Rooms {
		fmt.Fprintf(table, "room %s\t%s\t%s\t%s\n", r.UID, r.Mode, sourceText(r.Source, r.Overridden), boardsText(r.Boards))
	}
	for _, r := range a.Boards {
		fmt.Fprintf(table, "boards %s\t%s\t%s\t\n", r.Match, r.Mode, sourceText(r.Source, r.Overridden))
	}
	for _, b := range a.Bypasses {
		fmt.Fprintf(table, "%s\n", bypassText(&b))
	}
	if a.File.Error != "" {
		fmt.Fprintf(table, "the newest rooms file is refused: %s\n", a.File.Error)
	}
	if a.Dynamic.Error != "" {
		fmt.Fprintf(table, "what is set at run time can't be read: %s\n", a.Dynamic.Error)
	}
	for _, bad := range a.Dynamic.Bad {
		fmt.Fprintf(table, "ignored: %s: %s\n", bad.Field, bad.Reason)
	}
	return table.Flush()
}

func sourceText(source string, overridden bool) string {
	if overridden {
		return source + " (overridden)"
	}
	return source
}

func boardsText(boards []rankcache.BoardID) string {
	const few = 5
	text := make([]string, 0, few+1)
	for _, b := range boards[:min(few, len(boards))] {
		text = append(text, string(b))
	}
	if len(boards) > few {
		text = append(text, fmt.Sprintf("… (%d)", len(boards)))
	}
	return strings.Join(text, " ")
}

// setEntry has the printed fields of an entry that was set.
type setEntry struct {
	UID, Match, Mode string
	Overridden       bool
}

func printSet(to io.Writer, row *setEntry) error {
	name, note := "room "+row.UID, ""
	if row.UID == "" {
		name = "boards " + row.Match
	}
	if row.Overridden {
		note = ", but the rooms file sets another mode and wins"
	}
	_, err := fmt.Fprintf(to, "%s is %s on all sidecars%s\n", name, row.Mode, note)
	return err
}
