package rooms

import (
	"fmt"
	"strings"
	"testing"
)

const grouped = `classes:
  - name: gift
    board: "gift:{zone}:{period}"
    period: day
    ops: [incr]
    feeds: [total, {class: guild-day, by: guild}, {class: guild-members, dims: {guild: guild}}]
  - {name: total, board: "total:{zone}", period: none}
  - {name: guild-day, board: "guilds:{zone}:{period}", period: day, ops: [incr], feeds: [guild-ever, {class: lands, by: land}]}
  - {name: guild-ever, board: "guilds:{zone}", period: none}
  - {name: lands, board: "lands:{zone}", period: none}
  - {name: guild-members, board: "members:{zone}:{guild}:{period}", period: day, ops: [incr], feeds: [{class: guild-best, by: ""}]}
  - {name: guild-best, board: "best:{guild}", period: none}
`

// A command's groups become members and dimensions of the boards that it feeds, all the way down.
func TestFeedsByGroups(t *testing.T) {
	f, err := Parse([]byte(grouped))
	if err != nil {
		t.Fatal(err)
	}
	gift := f.Class("gift")
	fed := func(groups map[string]string) string {
		var all []string
		for _, to := range f.Fed(gift) {
			if member, dims, ok := to.Of("m", map[string]string{"zone": "7"}, groups); ok {
				all = append(all, fmt.Sprint(to.Name(), " ", member, " ", dims))
			}
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct {
		groups map[string]string
		want   string
	}{
		{nil, "total m map[zone:7]"},
		{map[string]string{"land": "fr"}, "total m map[zone:7], lands fr map[zone:7]"},
		{map[string]string{"guild": "g1", "land": "fr"}, "total m map[zone:7], guild-day g1 map[zone:7], guild-ever g1 map[zone:7], lands fr map[zone:7], " +
			"guild-members m map[guild:g1 zone:7], guild-best m map[guild:g1]"},
	} {
		if got := fed(c.groups); got != c.want {
			t.Errorf("%v: fed\n%s, want\n%s", c.groups, got, c.want)
		}
	}
	if got := fmt.Sprint(gift.By, f.Class("total").By, f.Class("guild-day").By); got != "[guild land] [] [land]" {
		t.Error("groups", got)
	}
	for text, want := range map[string]string{"guild=g7 land=fr": "", "team=g7": "no group \"team\"", "guild=a-b": "want characters of", "land=": "land: "} {
		groups := make(map[string]string)
		for one := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(one, "=")
			groups[name] = value
		}
		if err := f.CheckGroups(gift, groups); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestParseRejectsFeedsByGroups(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"{class: guild-day, by: guild}", "{class: guild-day, by: Guild}", "line 6: feeds \"guild-day\" by \"Guild\""},
		{"{class: guild-day, by: guild}", "{by: guild}", "feeds \"\", which is not a class"},
		{"{class: guild-day, by: guild}", "{class: guild-day, member: guild}", "line 6: unknown or repeated key \"member\""},
		{"{class: guild-day, by: guild}", "{class: guild-day, by: 7}", "line 6: want a string"},
		{", dims: {guild: guild}}]", "}]", "its dimension guild is none of this class: want it in dims, as in {class: guild-members, dims: {guild: a group}}"},
		{", dims: {guild: guild}}]", ", dims: [guild]}]", "line 6: want a mapping"},
		{", dims: {guild: guild}}]", ", dims: {guild: guild, host: host}}]", "dims: host is none of its dimensions"},
		{"[total, {", "[total, guild-ever, {", "line 2: class gift: feeds guild-ever in two ways, by way of guild-day with other members"},
		{"[total, {", "[total, {class: lands, by: guild}, {", "feeds lands in two ways"},
		{"[total, {", "[{class: guild-day, by: team}, {", "feeds \"guild-day\" twice"},
	} {
		if _, err := Parse([]byte(strings.Replace(grouped, c.was, c.is, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.is, err, c.want)
		}
	}
}
