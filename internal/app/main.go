// Package app is rankcache's command line: the commands of [rankcache/internal/serve],
// [rankcache/internal/run] and [rankcache/internal/operate] under one root, and the commands that
// know several of them. Its tests run the whole command.
package app

import (
	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/operate"
	"rankcache/internal/run"
	"rankcache/internal/serve"
)

// NewCommand returns the command line of rankcache.
func NewCommand() *cobra.Command {
	root := cli.NewRoot(&cobra.Command{
		Use:   "rankcache",
		Short: "Leaderboards answered from local memory, beside the app",
		Long: `rankcache is a sidecar: the app asks localhost for a leaderboard and is answered
from memory. Kafka and Redis stay the systems of record.

Every flag is also an environment variable (--redis-timeout: RANKCACHE_REDIS_TIMEOUT)
and a key of the YAML file given by --config (redis-timeout). Addresses are host:port,
:port, http://host:port or unix:/path. --help leaves out flags that are rarely set, --help-all lists all.

Exit codes: 0 done, or stopped by one SIGTERM or SIGINT; 1 failed; 2 bad flag or
configuration; 3 verify, ledger check, rebuild --dry-run, reconcile --once: something differs; 4 verify, doctor, wait:
a server could not be asked; 130 ended at once by a second signal, at least a second after the first. SIGHUP reads the files of secrets and
certificates of the long-running commands again.`,
		Example: `  rankcache doctor --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache serve --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache write --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml`,
	})
	root.PersistentFlags().String("config", "", "YAML `file` of settings, named as the flags are")
	root.AddCommand(LongRunning()...)
	root.AddCommand(
		cli.FromConfig(operate.NewHotCommand()), operate.NewRoomsCommand(), operate.NewClassesCommand(), operate.NewMembersCommand(), newConfigCommand(), cli.FromConfig(operate.NewWaitCommand()), operate.NewDoctorCommand(&serve.Options{}), operate.NewVerifyCommand(), operate.NewTryCommand(), operate.NewRebuildCommand(), operate.NewBigCommand(), operate.NewDebugCommand(), cli.FromConfig(operate.NewPlanCommand()), operate.NewVersionCommand(),
		movedCommand("demo"), movedCommand("bench"), goneCommand("log-level", "start the process with --log-level"))
	cli.CompleteFlags(root)
	return root
}

// LongRunning returns the commands that run until they are stopped, in the order of the manual.
func LongRunning() []*cobra.Command {
	return []*cobra.Command{serve.NewCommand(), serve.NewKeepCommand(), run.NewWriteCommand(), run.NewLedgerCommand(), run.NewReconcileCommand(), run.NewPollCommand(), run.NewControllerCommand()}
}

// movedCommand is a hidden command whose error names rankcache-lab, which links what no pod needs.
func movedCommand(name string) *cobra.Command {
	return goneCommand(name, "it is a command of rankcache-lab: run \"make build\" and bin/rankcache-lab "+name)
}

// goneCommand is a hidden command whose error tells what is in its place.
func goneCommand(name, instead string) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error {
		return cli.Usagef("%s is no command any more: %s", name, instead)
	}}
}
