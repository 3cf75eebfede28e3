package app

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"rankcache/internal/cli"
	"rankcache/internal/run"
	"rankcache/internal/serve"
)

// newConfigCommand prints the settings in force for a long-running command.
func newConfigCommand() *cobra.Command {
	config := configOf(serve.NewCommand(), "config")
	config.Short = "Print the configuration in force, secrets masked"
	config.Long = `Print what rankcache serve would run with: flags over environment over file.
The sub-commands do the same for the other long-running commands. The output is
itself a configuration file. Only secrets that are given as values are masked in
it, and a masked value is refused when it is read back: give secrets as files.`
	config.Example = `  rankcache config --config rankcache.yaml
  rankcache config write -o json`
	config.AddCommand(configOf(serve.NewKeepCommand(), "keep"), configOf(run.NewWriteCommand(), "write"), configOf(run.NewLedgerCommand(), "ledger"), configOf(run.NewReconcileCommand(), "reconcile"), configOf(run.NewPollCommand(), "poll"), configOf(run.NewControllerCommand(), "controller"))
	return config
}

// configOf returns a command with the flags of like that prints them.
func configOf(like *cobra.Command, name string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   "Print the configuration of rankcache " + like.Name(),
		Example: "  rankcache config " + name + " --config rankcache.yaml -o json",
		Args:    cli.NoArgs,
	}
	like.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "output" { // this command's own
			cmd.Flags().AddFlag(f)
		}
	})
	names := cli.FlagNames(cmd.Flags())
	output := cli.OutputFlag(cmd.Flags(), "yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		kafka, err := cli.LoadConfig(cmd)
		if err != nil {
			return err
		}
		return printConfig(cmd, cli.InForce(cmd.Flags(), names, kafka), *output)
	}
	return cmd
}

func printConfig(cmd *cobra.Command, values map[string]any, output string) error {
	return cli.PrintAs(cmd.OutOrStdout(), output, values, func(to io.Writer) error { return yaml.NewEncoder(to).Encode(values) })
}
