package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const groupFlag = "rankcache_group" // the annotation of a flag's heading in --help

func annotate(f *pflag.Flag, key string, values ...string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = values
}

// Group puts those of the flags that have no heading yet under one in --help.
func Group(flags *pflag.FlagSet, heading string) {
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[groupFlag] == nil {
			annotate(f, groupFlag, heading)
		}
	})
}

// helpAll, in place of --help, has all flags listed under their headings, and is noted in the root command.
const helpAll = "--help-all"

// takeHelpAll returns args with --help in place of --help-all.
func takeHelpAll(root *cobra.Command, args []string) []string {
	at := slices.Index(args, helpAll)
	if at < 0 {
		return args
	}
	root.Annotations = map[string]string{helpAll: ""}
	return slices.Replace(slices.Clone(args), at, at+1, "--help")
}

const manyFlags = 30 // how many a command lists all of in --help

// rare matches the settings that most leave as they are. Every other flag of a command with many is in --help.
var rare = regexp.MustCompile("^(key-.*|topic-(commands|refused|class-updates|finals|ledger|updates|setting)|total.*|audit-.*|publish-every|give-up-after|snapshot-(every|max-age)|" +
	"hot-(instance|promote|residency|exit|cool|max|entries|refresh|stale).*|tencent-.*|poll-every|profile-(header|redis-type|budget|ttl|negative|stale|deadline|timeout).*|otlp-.*|redis-(file|user|password|ca|timeout|role|read).*|" +
	"log-format|resp-.*|live-.*|metrics-boards|compat-board|allow-host|drain-early|.*-tokens?|(snapshots|class-tokens|profile-url|admin-token|write-token)-file|log-size)$")

func helpUsages(c *cobra.Command, flags *pflag.FlagSet) string {
	often, left := pflag.NewFlagSet("", pflag.ContinueOnError), 0
	often.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && rare.MatchString(f.Name) {
			left++
		} else {
			often.AddFlag(f)
		}
	})
	if _, all := c.Root().Annotations[helpAll]; all || len(strings.Split(trimEnd(flags.FlagUsages()), "\n")) <= manyFlags {
		return trimEnd(FlagUsages(flags))
	}
	return fmt.Sprintf("Flags:\n%s\n\nAnd %d that are rarely set: %s %s lists all.", trimEnd(often.FlagUsages()), left, c.CommandPath(), helpAll)
}

// groupUsage has the help of root and its commands list flags under their headings. Cobra's own usage templates would
// do it too, but they link text/template, and whatever can call methods by name makes the binary 18 MB larger.
func groupUsage(root *cobra.Command) {
	plain := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStderr()
		var text strings.Builder
		c.SetOut(&text)
		err := plain(c)
		c.SetOut(out)
		flags := c.LocalFlags()
		_, failed := io.WriteString(out, strings.Replace(text.String(), "Flags:\n"+trimEnd(flags.FlagUsages()), helpUsages(c, flags), 1))
		return errors.Join(err, failed)
	})
}

func trimEnd(text string) string { return strings.TrimRightFunc(text, unicode.IsSpace) }

// FlagUsages returns the flags' usage texts under their headings, in the order in which they were registered.
func FlagUsages(flags *pflag.FlagSet) string {
	var headings []string
	groups := map[string]*pflag.FlagSet{}
	flags.VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if named := f.Annotations[groupFlag]; named != nil {
			heading = named[0]
		}
		if groups[heading] == nil {
			groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			groups[heading].SortFlags = false
			headings = append(headings, heading)
		}
		groups[heading].AddFlag(f)
	})
	var text strings.Builder
	for _, heading := range headings {
		text.WriteString(heading + ":\n" + groups[heading].FlagUsages() + "\n")
	}
	return text.String()
}
