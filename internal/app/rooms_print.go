package app

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"rankcache"
	"rankcache/internal/roomsync"
)

// roomsAnswer is what is printed of GET /rooms.
type roomsAnswer struct {
	Rooms   []roomsync.RoomRow     `json:"rooms"`
	Boards  []roomsync.RuleRow     `json:"boards"`
	File    roomsync.FileStatus    `json:"file"`
	Dynamic roomsync.DynamicStatus `json:"dynamic"`
}

func printRooms(to io.Writer, body []byte) error {
	var a roomsAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tMODE\tSOURCE\tBOARDS")
	for _, r := range a.Rooms {
		fmt.Fprintf(table, "room %s\t%s\t%s\t%s\n", r.UID, r.Mode, sourceText(r.Source, r.Overridden), boardsText(r.Boards))
	}
	for _, r := range a.Boards {
		fmt.Fprintf(table, "boards %s\t%s\t%s\t\n", r.Match, r.Mode, sourceText(r.Source, r.Overridden))
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

func printSet(to io.Writer, body []byte) error {
	var row struct {
		UID, Match, Mode string
		Overridden       bool
	}
	if err := json.Unmarshal(body, &row); err != nil {
		return err
	}
	name, note := "room "+row.UID, ""
	if row.UID == "" {
		name = "boards " + row.Match
	}
	if row.Overridden {
		note = ", but the rooms file says otherwise and wins"
	}
	_, err := fmt.Fprintf(to, "%s is %s on all sidecars%s\n", name, row.Mode, note)
	return err
}
