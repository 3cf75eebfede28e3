package app

import "github.com/spf13/cobra"

// NewCommand returns the command line of rankcache.
func NewCommand() *cobra.Command {
	root := NewRoot(&cobra.Command{
		Use:   "rankcache",
		Short: "Leaderboards answered from local memory, beside the app",
		Long: `rankcache is a sidecar: the app asks localhost for a leaderboard and is answered
from memory. Kafka and Redis stay the systems of record.

Every flag is also an environment variable (--redis-timeout: RANKCACHE_REDIS_TIMEOUT)
and a key of the YAML file given by --config (redis-timeout). Addresses are host:port,
:port, http://host:port or unix:/path.

Exit codes: 0 done, or stopped by one SIGTERM or SIGINT; 1 failed; 2 bad flag or
configuration; 130 ended at once by another signal a second or more later. SIGHUP
ends no serve, write or poll: it has the files of secrets read again.`,
		Example: `  rankcache doctor --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache serve --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache write --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml`,
	})
	root.PersistentFlags().String("config", "", "YAML `file` of settings, named as the flags are")
	root.AddCommand(
		newServeCommand(), newWriteCommand(), newPollCommand(),
		fromConfig(newHotCommand()), newRoomsCommand(), newConfigCommand(), fromConfig(newWaitCommand()), newDoctorCommand(), fromConfig(newPlanCommand()), newDocsCommand(), newVersionCommand(),
		movedCommand("demo"), movedCommand("bench"))
	completeFlags(root)
	return root
}

// NewRoot gives a root command what all commands of the project share: errors
// are printed once, by [Main], and a bad flag ends with [ExitUsage].
func NewRoot(root *cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	return root
}

// movedCommand is a hidden command whose error names rankcache-lab, which has it:
// that binary links servers and load generators that no pod needs.
func movedCommand(name string) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error {
		return Usagef("%[1]s is a command of rankcache-lab: run \"make build\" and bin/rankcache-lab %[1]s", name)
	}}
}
