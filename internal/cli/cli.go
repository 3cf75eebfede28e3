package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoArgs is cobra.NoArgs with our exit code.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no argument, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// OneArg is cobra.ExactArgs(1) with our exit code.
func OneArg(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usagef("%s takes one argument, got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// AtMostOneArg is cobra.MaximumNArgs(1) with our exit code.
func AtMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return Usagef("%s takes at most one argument, got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

// OutputFlag registers -o: in the named form, for people, or as JSON, whose fields stay what they are, for scripts.
func OutputFlag(flags *pflag.FlagSet, form string) *string {
	output := new(string)
	ChoiceVar(flags, output, "output", "o", form, "how to print: "+form+" or json", form, "json")
	return output
}

// PrintAs prints v as JSON if output is "json", and otherwise calls forPeople.
func PrintAs(to io.Writer, output string, v any, forPeople func(io.Writer) error) error {
	if output == "json" {
		return PrintJSON(to, v)
	}
	return forPeople(to)
}

func PrintJSON(to io.Writer, v any) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Choice is a flag of a few words. A wrong one is refused when it is read, and the shell completes the right ones.
type Choice struct {
	value *string
	Words []string
}

// ChoiceVar registers a flag that takes one of words; first is its default.
func ChoiceVar(flags *pflag.FlagSet, value *string, name, short, first, usage string, words ...string) {
	*value = first
	flags.VarP(&Choice{value, words}, name, short, usage)
}

func (c *Choice) String() string { return *c.value }

func (c *Choice) Type() string { return "word" }

// Set takes one of the words.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.Words, s) {
		return fmt.Errorf("want %s", orList(c.Words))
	}
	*c.value = s
	return nil
}

func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// CompleteFlags tells the shell what flags take: a few words, a file, or nothing that a file name could help with.
func CompleteFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		// It fails for a flag that is shared with another command and has it already.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, completion(f))
	})
	for _, sub := range cmd.Commands() {
		CompleteFlags(sub)
	}
}

func completion(f *pflag.Flag) cobra.CompletionFunc {
	if c, ok := f.Value.(*Choice); ok {
		return cobra.FixedCompletions(c.Words, cobra.ShellCompDirectiveNoFileComp)
	}
	if what, _ := pflag.UnquoteUsage(f); what == "file" || what == "folder" {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	return cobra.NoFileCompletions
}
