package app

import (
	"encoding/csv"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// newConfigCommand prints the settings in force for a long-running command.
func newConfigCommand() *cobra.Command {
	config := configOf(newServeCommand(), "config")
	config.Short = "Print the configuration in force, secrets masked"
	config.Long = `Print what rankcache serve would run with: flags over environment over file.
The sub-commands do the same for the other long-running commands. The output is
itself a configuration file. Only secrets that are given as values are masked in
it, and a masked value is refused when it is read back: give secrets as files.`
	config.Example = `  rankcache config --config rankcache.yaml
  rankcache config write -o json`
	config.AddCommand(configOf(newWriteCommand(), "write"), configOf(newLedgerCommand(), "ledger"), configOf(newReconcileCommand(), "reconcile"), configOf(newPollCommand(), "poll"), configOf(newControllerCommand(), "controller"))
	return config
}

// configOf returns a command with the flags of like that prints them.
func configOf(like *cobra.Command, name string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   "Print the configuration of rankcache " + like.Name(),
		Example: "  rankcache config " + name + " --config rankcache.yaml -o json",
		Args:    NoArgs,
	}
	like.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "output" { // this command's own
			cmd.Flags().AddFlag(f)
		}
	})
	names := flagNames(cmd.Flags())
	output := OutputFlag(cmd.Flags(), "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		kafka, err := loadConfig(cmd)
		if err != nil {
			return err
		}
		return printConfig(cmd, inForce(cmd.Flags(), names, kafka), *output)
	}
	return cmd
}

func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// shownNames returns the names of the settings among the flags. Kafka's, which a command
// line brings in, have the values of loadConfig.
func shownNames(flags *pflag.FlagSet) []string {
	return slices.DeleteFunc(flagNames(flags), func(name string) bool {
		return name == "help" || strings.HasPrefix(name, kafkaPrefix)
	})
}

// inForce returns the values of the flags and of Kafka's settings, by key: a text
// or, of a list, a list of texts.
func inForce(flags *pflag.FlagSet, names []string, kafka map[string]string) map[string]any {
	values := map[string]any{}
	for _, name := range names {
		values[name] = valueOf(flags.Lookup(name))
	}
	for key, value := range kafka {
		if secretKey.MatchString(key) && !strings.HasSuffix(key, fileSuffix) && value != "" {
			value = masked
		}
		values[kafkaPrefix+key] = value
	}
	return values
}

func printConfig(cmd *cobra.Command, values map[string]any, output string) error {
	return PrintAs(cmd.OutOrStdout(), output, values, func(to io.Writer) error { return yaml.NewEncoder(to).Encode(values) })
}

const masked = "****"

// secretKey finds librdkafka settings that are or hold secrets.
var secretKey = regexp.MustCompile(`(?i)password|secret|token|\.pem$|key$|jaas|oauthbearer\.config`)

// valueOf returns the flag's value with secrets in it masked.
func valueOf(f *pflag.Flag) any {
	secret := IsSecret(f)
	switch f.Value.Type() {
	case "stringSlice", "stringToString":
		items := listOf(f)
		for i := range items {
			if secret {
				items[i] = masked
			}
		}
		return items
	}
	value := f.Value.String()
	if u, err := url.Parse(value); !secret && (err != nil || u.User == nil) || value == "" {
		return value
	}
	return maskURL(value)
}

// listOf returns the items of a list, or the pairs of a map as key=value.
func listOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return slices.Clone(list.GetSlice())
	}
	line := strings.TrimSuffix(strings.TrimPrefix(f.Value.String(), "["), "]")
	items, _ := csv.NewReader(strings.NewReader(line)).Read() // as pflag has written it
	return append([]string{}, items...)
}

// maskURL masks the password of a URL and what its query names a secret, and the whole of
// anything else.
func maskURL(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return masked
	}
	query := u.Query()
	for name := range query {
		if secretKey.MatchString(name) {
			query.Set(name, masked)
			u.RawQuery = query.Encode()
		}
	}
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), masked)
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(masked), masked)
}
