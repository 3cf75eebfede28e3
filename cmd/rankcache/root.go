package main

import "github.com/spf13/cobra"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "rankcache",
		Short: "Leaderboards answered from local memory, beside the app",
		Long: `rankcache is a sidecar: the app asks localhost for a leaderboard and is answered
from memory. Kafka and Redis stay the systems of record.

Every flag is also an environment variable (--redis-timeout: RANKCACHE_REDIS_TIMEOUT)
and a key of the YAML file given by --config (redis-timeout).

Exit codes: 0 done, or stopped by one SIGTERM or SIGINT; 1 failed; 2 bad flag or
configuration; 3 the demo's board differs from Redis; 130 ended at once by a second
signal.`,
		Example: `  rankcache demo
  rankcache serve --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache write --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().String("config", "", "YAML `file` of settings, named as the flags are")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(newServeCommand(), newWriteCommand(), newPollCommand(), newDemoCommand(),
		newBenchCommand(), newHotCommand(), newRoomsCommand(), newConfigCommand(), newWaitCommand(), newDoctorCommand(), newPlanCommand(), newDocsCommand(), newVersionCommand())
	completeFlags(root)
	return root
}
