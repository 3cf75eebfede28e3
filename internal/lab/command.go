// Package lab is rankcache-lab: the demo, the benchmarks, and the servers, loads
// and faults that they and the tests use.
package lab

import (
	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/lab/bench"
	"rankcache/internal/lab/demo"
	"rankcache/internal/lab/reference"
	"rankcache/internal/lab/simulate"
)

// NewCommand returns the command line of rankcache-lab.
func NewCommand() *cobra.Command {
	root := cli.NewRoot(&cobra.Command{
		Use:   "rankcache-lab",
		Short: "The workbench of rankcache: demos and benchmarks",
		Long: `rankcache-lab shows rankcache at work and measures it on this machine. It is not
deployed: pods run rankcache.

Exit codes: 0 done; 1 failed; 2 bad flag or argument; 3 a board of a demo differs from
Redis; 130 ended at once by a second signal.`,
		Example: `  rankcache-lab alone --duration 20s
  rankcache-lab demo --duration 30s
  rankcache-lab bench read -o json`,
	})
	root.AddCommand(demo.NewAloneCommand(), demo.NewCommand(), bench.NewCommand(), reference.NewCommand(), simulate.NewCommand())
	return root
}
