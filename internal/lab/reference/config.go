package reference

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/app"
	"rankcache/internal/cli"
)

const configIntro = `# Configuration

Every setting has one name: the flag ` + "`--redis-timeout`" + ` is the environment variable
` + "`RANKCACHE_REDIS_TIMEOUT`" + ` and the key ` + "`redis-timeout`" + ` of the YAML file that ` + "`--config`" + ` names. A flag
wins over the environment, that over the file. Unknown keys are errors; one file may hold
the settings of several commands. ` + "`rankcache config`" + ` prints what is in force, secrets masked.

Durations are written ` + "`200ms`, `5s`, `1h30m`" + `; lists as ` + "`a,b`" + ` or, in the file, as YAML lists.
Settings marked **secret** are never printed or logged. Each can be given as a file, such as a mounted
Kubernetes Secret: ` + "`--redis-password-file`, `RANKCACHE_REDIS_PASSWORD_FILE`" + `. One newline at the end is
not part of the value; a file that is missing, empty or larger than 64 KiB is an error at the start. A file
that changes is read again: new connections to Redis log in with the new password, the next
request needs the new token. A file that then can't be read leaves the last value in force and is logged.

` + "`--kafka.<key>`" + ` (` + "`RANKCACHE_KAFKA_<KEY>`" + ` with ` + "`_`" + ` for ` + "`.`" + `, ` + "`kafka.<key>`" + ` in the file) passes any setting
of librdkafka, such as ` + "`kafka.security.protocol`" + ` or ` + "`kafka.sasl.password`" + `. Those that end with
` + "`password` or `secret`" + ` can be given as files, too. A user name or password for SASL
that changes is read again; others are read at the start:
` + "`--kafka.sasl.password-file`, `RANKCACHE_KAFKA_SASL_PASSWORD_FILE`" + `.
A sidecar logs librdkafka's own lines only with ` + "`--kafka.debug` or `--kafka.log_level`" + `.
`

// settingSection is a table of CONFIG.md.
type settingSection struct {
	title string
	flags []*pflag.Flag
}

// settingSections returns first what all long-running commands share, then what each has of its own,
// in the order of the code, which groups related flags.
var settingSections = sync.OnceValue(func() []settingSection {
	commands, count := app.LongRunning(), map[string]int{}
	for _, cmd := range commands {
		cmd.Flags().SortFlags = false
		visitSettings(cmd, func(f *pflag.Flag) { count[settingOf(f)]++ })
	}
	all := []settingSection{{title: "All of serve, write, ledger, poll and controller"}}
	for i, cmd := range commands {
		own := settingSection{title: "rankcache " + cmd.Name()}
		visitSettings(cmd, func(f *pflag.Flag) {
			switch {
			case count[settingOf(f)] < len(commands):
				own.flags = append(own.flags, f)
			case i == 0:
				all[0].flags = append(all[0].flags, f)
			}
		})
		all = append(all, own)
	}
	return all
})

// isSetting has the settings that CONFIG.md describes, by [settingOf].
var isSetting = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, s := range settingSections() {
		for _, f := range s.flags {
			all[settingOf(f)] = true
		}
	}
	return all
})

func visitSettings(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			visit(f)
		}
	})
}

// settingOf returns what two flags have in common that are described once.
func settingOf(f *pflag.Flag) string { return f.Name + "\x00" + f.Usage + "\x00" + f.DefValue }

// writeConfig writes docs/CONFIG.md.
func writeConfig(to io.Writer) error {
	var text bytes.Buffer
	for _, s := range settingSections() {
		fmt.Fprintf(&text, "\n## %s\n\n", s.title)
		tableRow(&text, "setting", "takes", "default", "what")
		tableRow(&text, "---", "---", "---", "---")
		for _, f := range s.flags {
			writeSetting(&text, f)
		}
	}
	return writeSections(to, configIntro, text.String())
}

// writeSetting writes the row of a setting; files of secrets are described once, in the intro.
func writeSetting(to io.Writer, f *pflag.Flag) {
	takes, usage := pflag.UnquoteUsage(f)
	if secret, ok := strings.CutSuffix(f.Name, "-file"); ok && usage == "file that holds --"+secret+"; read again when it changes" {
		return
	}
	if cli.IsSecret(f) {
		usage = "**secret**: " + usage
	}
	tableRow(to, "`"+f.Name+"`", takesOf(f, takes), codeOrDash(defaultOf(f)), noTags.Replace(usage))
}

// takesOf returns the kind of value that a flag takes, where its usage text does not name it.
func takesOf(f *pflag.Flag, named string) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "stringSlice":
		return "list of " + strings.Replace(named, "strings", "text", 1)
	}
	return strings.Replace(named, "string", "text", 1)
}

func defaultOf(f *pflag.Flag) string {
	if f.DefValue == "[]" {
		return ""
	}
	return f.DefValue
}

func codeOrDash(s string) string {
	if s == "" {
		return "-"
	}
	return "`" + s + "`"
}
