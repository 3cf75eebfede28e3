package app

import (
	"strings"
	"sync"

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

// group puts those of the flags that have no heading yet under one in --help.
func group(flags *pflag.FlagSet, heading string) {
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[groupFlag] == nil {
			annotate(f, groupFlag, heading)
		}
	})
}

// addTemplate tells cobra, which has one table of functions for all commands, ours.
var addTemplate = sync.OnceFunc(func() { cobra.AddTemplateFunc("groupedFlags", FlagUsages) })

// groupUsage has the help of root and its commands list flags under their headings.
func groupUsage(root *cobra.Command) {
	addTemplate()
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", "{{groupedFlags .LocalFlags | trimTrailingWhitespaces}}", 1))
}

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
