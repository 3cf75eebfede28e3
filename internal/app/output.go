package app

import (
	"encoding/json"
	"io"

	"github.com/spf13/pflag"
)

// OutputFlag registers -o: in the named form, for people, or as JSON, whose
// fields stay what they are, for scripts.
func OutputFlag(flags *pflag.FlagSet, form string) *string {
	output := new(string)
	choiceVar(flags, output, "output", "o", form, "how to print: "+form+" or json", form, "json")
	return output
}

// PrintAs prints v as JSON if output says so, and otherwise calls forPeople.
func PrintAs(to io.Writer, output string, v any, forPeople func(io.Writer) error) error {
	if output == "json" {
		return PrintJSON(to, v)
	}
	return forPeople(to)
}

// PrintJSON prints v as indented JSON.
func PrintJSON(to io.Writer, v any) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
