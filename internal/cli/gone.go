package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flag that goes stays here for two minor versions: it is taken, and a warning says what is done in its place. Those
// of before 0.1.0 may go with 0.3.0. docs/UPGRADE.md has the same for people.

type goneSetting struct {
	does  string // what rankcache does: the setting's last default; "": it has no use any more
	why   string // what is in its place
	first string // what to do first if it had another value, which is refused; "": any is taken
	typed bool   // another command has it: in an environment that commands share it is right
}

// renameKeys is what to do with keys of another name.
const renameKeys = "Stop the writers, RENAME the keys of the pattern %s to that, and leave the setting out (docs/UPGRADE.md)"

// fixedKey is a name of keys that can't be chosen any more.
func fixedKey(name string) goneSetting {
	return goneSetting{does: name, why: "the name of these keys is fixed", first: renameKeys}
}

var goneSettings = map[string]goneSetting{
	"give-up-per-update": {why: "--give-up-after is the whole of it"}, "metrics-largest": {why: "rankcache big lists the largest boards"},
	"request-cache": {does: "true", why: "it is always on"}, "hotkeys-min-cpu": {does: "1ms"},
	"hot-exit-rate": {does: "half of --hot-promote-rate"}, "hot-fetch-timeout": {does: "1s"}, "hot-idle": {does: "10s"}, "hot-listed-exit-rate": {does: "1"},
	"hot-listed-rate": {does: "2"}, "hot-promote-seconds": {does: "2"}, "hot-verdict-age": {does: "30s"},
	"poll-id": {why: "host name and process id name a poller"}, "poll-lease": {does: "1.5s"}, "poll-timeout": {does: "5s"},
	"profile-batch": {does: "100"}, "profile-calls": {does: "8"},
	"admin-token": {why: "only serve has what it guards", typed: true}, "admin-token-file": {why: "only serve has what it guards", typed: true},
	"key-absent-topics": fixedKey("rankcache:topics:absent"), "key-adopter": fixedKey("{<board>}:adopter"), "key-guard": fixedKey("{<board>}:guard"),
	"key-readopt": fixedKey("rankcache:readopt"), "key-room-ends": fixedKey("rankcache:room-ends"), "key-scores": fixedKey("{<board>}:scores"),
	"key-order": {does: "{<board>}:order:<order>", why: "order ids are in hashes named by --key-orders, and begin empty", first: renameKeys},
	"ledger": {does: "classes", why: "the ledger has the boards of classes with ledger: true",
		first: "Boards of no class are not durable, so that Redis may lose what the ledger would not have (it was --ledger %s): give them a class with ledger: true in the rooms file, and leave the setting out"},
	"key-seq": {does: "{<board>}:seq", why: "it is in the meta named by --key-meta", first: renameKeys},
}

type goneFlag struct {
	goneSetting
	name, value string
	told        bool
}

func (g *goneFlag) String() string { return g.value }

func (g *goneFlag) Type() string { return "string" }

// Set takes any value but one for which something is to be done first.
func (g *goneFlag) Set(value string) error {
	if g.value = value; g.first != "" && value != g.does {
		return fmt.Errorf("is gone: %s (it was %s by default). "+g.first, g.why, g.does, value)
	}
	return nil
}

func (g *goneFlag) warning() string {
	parts := []string{"--" + g.name + " is gone and has no effect"}
	if g.does != "" && g.does != g.value {
		parts = append(parts, "rankcache does as with "+g.does+", not "+g.value)
	}
	if g.why != "" {
		parts = append(parts, g.why)
	}
	return strings.Join(parts, ": ") + ". Leave it out"
}

// addGone makes a setting that is gone, and which the command does not have, one of its flags.
func addGone(flags *pflag.FlagSet, name string) {
	setting, gone := goneSettings[name]
	if !gone || flags.Lookup(name) != nil {
		return
	}
	f := flags.VarPF(&goneFlag{goneSetting: setting, name: name}, name, "", "gone")
	if f.Hidden = true; name == "request-cache" {
		f.NoOptDefVal = "true"
	}
}

// addGoneKey is addGone for a key of the configuration.
func addGoneKey(flags *pflag.FlagSet, key string) {
	if !goneSettings[key].typed {
		addGone(flags, key)
	}
}

func addGoneFlags(root *cobra.Command, args []string) {
	cmd, _, err := root.Find(args)
	if err != nil {
		return // the caller tells
	}
	for _, arg := range args {
		if flag, ok := strings.CutPrefix(arg, "--"); ok {
			name, _, _ := strings.Cut(flag, "=")
			addGone(cmd.Flags(), name)
		}
	}
}

// tellGone calls tell once for each flag of a command that is gone and was given.
func tellGone(flags *pflag.FlagSet, tell func(warning string)) {
	flags.Visit(func(f *pflag.Flag) {
		if g, ok := f.Value.(*goneFlag); ok && !g.told {
			g.told = true
			tell(g.warning())
		}
	})
}
