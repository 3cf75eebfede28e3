package cli

import (
	"errors"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupFlag is the annotation of a flag's heading in --help.
const groupFlag = "rankcache_group"

// annotate adds an annotation to a flag.
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

// groupUsage has the help of root and its commands list flags under their headings. Cobra's own usage templates would do it
// too, but they link text/template, and whatever can call methods by name makes the binary 18 MB larger.
func groupUsage(root *cobra.Command) {
	plain := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStderr()
		var text strings.Builder
		c.SetOut(&text)
		err := plain(c)
		c.SetOut(out)
		flags := c.LocalFlags()
		_, failed := io.WriteString(out, strings.Replace(text.String(), "Flags:\n"+trimEnd(flags.FlagUsages()), trimEnd(FlagUsages(flags)), 1))
		return errors.Join(err, failed)
	})
}

func trimEnd(text string) string { return strings.TrimRightFunc(text, unicode.IsSpace) }

// FlagUsages returns the flags' usage texts under their headings, in the order in which they
// were registered.
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
