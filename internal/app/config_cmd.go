package app

import (
	"io"
	"net/url"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// newConfigCommand prints what is in force for a long-running command.
func newConfigCommand() *cobra.Command {
	config := configOf(newServeCommand(), "config")
	config.Short = "Print the configuration in force, secrets masked"
	config.Long = `Print what rankcache serve would run with: flags over environment over file.
The sub-commands do the same for the other long-running commands. The output is
itself a configuration file, except that secrets are masked.`
	config.Example = `  rankcache config --config rankcache.yaml
  rankcache config write -o json`
	config.AddCommand(configOf(newWriteCommand(), "write"), configOf(newPollCommand(), "poll"))
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
	cmd.Flags().AddFlagSet(like.Flags())
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

func inForce(flags *pflag.FlagSet, names []string, kafka map[string]string) map[string]string {
	values := map[string]string{}
	for _, name := range names {
		values[name] = maskFlag(flags.Lookup(name))
	}
	for key, value := range kafka {
		if secretKey.MatchString(key) {
			value = masked
		}
		values[kafkaPrefix+key] = value
	}
	return values
}

func printConfig(cmd *cobra.Command, values map[string]string, output string) error {
	return PrintAs(cmd.OutOrStdout(), output, values, func(to io.Writer) error { return yaml.NewEncoder(to).Encode(values) })
}

const masked = "****"

// secretKey finds librdkafka settings that are or hold secrets.
var secretKey = regexp.MustCompile(`(?i)password|secret|token|\.pem$|key$|jaas|oauthbearer\.config`)

// maskFlag returns the flag's value, with what is secret in it masked: the
// password of a URL, or the whole value.
func maskFlag(f *pflag.Flag) string {
	value := f.Value.String()
	if _, secret := f.Annotations[secretFlag]; !secret || value == "" {
		return value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return masked
	}
	if query := u.Query(); query.Has("password") {
		query.Set("password", masked)
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}
