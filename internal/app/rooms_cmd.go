package app

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"rankcache"
	"rankcache/rooms"
)

func newRoomsCommand() *cobra.Command {
	rooms := &cobra.Command{
		Use:   "rooms",
		Short: "Check rooms files; list, set and delete rooms of running sidecars",
		Example: `  rankcache rooms check rooms.yaml
  rankcache rooms list`,
	}
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a rooms file would be accepted",
		Long: `Read a rooms file with the code that rankcache serve reads it with, and print
what it says. A file that serve would refuse is an error with its line.`,
		Example: "  rankcache rooms check rooms.yaml",
		Args:    OneArg,
	}
	output := OutputFlag(check.Flags(), "text")
	check.RunE = func(cmd *cobra.Command, args []string) error {
		return checkRooms(cmd.OutOrStdout(), args[0], *output)
	}
	rooms.AddCommand(check, fromConfig(newRoomsListCommand()), fromConfig(newRoomsSetCommand()), fromConfig(newRoomsDeleteCommand()))
	return rooms
}

// roomsSummary is the stable JSON of rooms check.
type roomsSummary struct {
	Rooms  map[string]int      `json:"rooms"`  // by mode
	Rules  int                 `json:"rules"`  // entries under boards:
	Boards []rankcache.BoardID `json:"boards"` // super-hot boards named in the file
}

func checkRooms(to io.Writer, path, output string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read rooms file: %w", err)
	}
	parsed, err := rooms.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := roomsSummary{Rooms: map[string]int{}, Rules: len(parsed.Rules),
		Boards: parsed.Resolve(nil).Boards(rooms.ModeSuperHot)}
	for _, room := range parsed.Rooms {
		s.Rooms[room.Mode.String()]++
	}
	return PrintAs(to, output, s, func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "%s is good: %d rooms (%d super-hot, %d hot, %d blocked), %d board rules\n", path,
			len(parsed.Rooms), s.Rooms["super-hot"], s.Rooms["hot"], s.Rooms["blocked"], s.Rules)
		return err
	})
}
