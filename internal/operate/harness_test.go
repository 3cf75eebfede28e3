package operate

import (
	"testing"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewCommand returns a command line with the commands of this room.
func NewCommand() *cobra.Command {
	root := cli.NewRoot(&cobra.Command{Use: "rankcache"})
	root.AddCommand(NewBigCommand(), NewRoomsCommand(), NewVerifyCommand(), NewTryCommand(), NewVersionCommand(), cli.FromConfig(NewWaitCommand()), NewDebugCommand(), NewClassesCommand())
	return root
}
