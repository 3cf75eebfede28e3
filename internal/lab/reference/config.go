package reference

import (
	"bytes"
	"fmt"
	"io"
	"strings"

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

// writeConfig writes docs/CONFIG.md: first what all long-running
// commands share, then what each has of its own.
func writeConfig(to io.Writer) error {
	commands := app.LongRunning()
	shared := func(f *pflag.Flag) bool {
		for _, cmd := range commands {
			if other := cmd.Flags().Lookup(f.Name); other == nil || other.DefValue != f.DefValue || other.Usage != f.Usage {
				return false
			}
		}
		return true
	}
	var text bytes.Buffer
	writeFlags(&text, "All of serve, write, ledger, poll and controller", commands[0], shared)
	for _, cmd := range commands {
		writeFlags(&text, "rankcache "+cmd.Name(), cmd, func(f *pflag.Flag) bool { return !shared(f) })
	}
	return writeSections(to, configIntro, text.String())
}

func writeFlags(to io.Writer, title string, cmd *cobra.Command, want func(*pflag.Flag) bool) {
	fmt.Fprintf(to, "\n## %s\n\n", title)
	tableRow(to, "setting", "environment", "takes", "default", "what")
	tableRow(to, "---", "---", "---", "---", "---")
	cmd.Flags().SortFlags = false // in the order of the code, which groups related flags
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !want(f) || f.Hidden {
			return
		}
		takes, usage := pflag.UnquoteUsage(f)
		if cli.IsSecret(f) {
			usage = "**secret**: " + usage
		}
		tableRow(to, "`"+f.Name+"`", "`"+cli.EnvName(f.Name)+"`", takesOf(f, takes), codeOrDash(defaultOf(f)), noTags.Replace(usage))
	})
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
