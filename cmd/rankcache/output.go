package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/pflag"
)

// outputFlag registers -o: in the named form, for people, or as JSON, whose
// fields stay what they are, for scripts.
func outputFlag(flags *pflag.FlagSet, form string) *string {
	output := new(string)
	choiceVar(flags, output, "output", "o", form, "how to print: "+form+" or json", form, "json")
	return output
}

// printAs prints v as JSON if output says so, and otherwise calls forPeople.
func printAs(to io.Writer, output string, v any, forPeople func(io.Writer) error) error {
	if output == "json" {
		return printJSON(to, v)
	}
	return forPeople(to)
}

func printJSON(to io.Writer, v any) error {
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
