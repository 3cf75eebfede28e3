package cli

import "github.com/spf13/pflag"

// Settings are those of one command.
type Settings interface {
	Register(*pflag.FlagSet)
	ReadSecrets(*pflag.FlagSet) error
}

// ParseArgs reads args into the settings of a command.
func ParseArgs(command string, o Settings, args []string) error {
	flags := pflag.NewFlagSet(command, pflag.ContinueOnError)
	o.Register(flags)
	if err := flags.Parse(args); err != nil {
		return Usagef("%s: %w", command, err)
	}
	return o.ReadSecrets(flags)
}
