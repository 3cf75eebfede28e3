package operate

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"rankcache/internal/cli"
	"rankcache/internal/roomsync"
)

func NewClassesCommand() *cobra.Command {
	classes := &cobra.Command{
		Use:   "classes",
		Short: "List, set and delete classes of running processes",
		Example: `  rankcache classes list
  rankcache classes set classes.yaml`,
	}
	classes.AddCommand(cli.FromConfig(newClassesListCommand()), cli.FromConfig(newClassesSetCommand()), cli.FromConfig(newClassesDeleteCommand()))
	return classes
}

func newClassesListCommand() *cobra.Command {
	return cli.Showing(&cobra.Command{
		Use:   "list",
		Short: "Print the classes in force on a running sidecar, and where each comes from",
		Long: `Print the classes in force on a running sidecar, and where each comes from: file or dynamic.
With -o json, document is what was set at run time.`,
		Example: `  rankcache classes list
  rankcache classes list -o json | jq -r .document`,
	}, "/classes", printClassList)
}

func newClassesSetCommand() *cobra.Command {
	c := &cli.AdminClient{}
	cmd := &cobra.Command{
		Use:   "set FILE",
		Short: "Set classes beside those of the rooms file, on all processes",
		Long: `Set it on one sidecar, which applies it at once; the others, writers and controllers follow through Redis
within 2 s. FILE has a list under classes, as a rooms file has it. It takes the place of
all classes that were set so before. A class of the rooms file wins over one of its name.`,
		Example: "  rankcache classes set classes.yaml",
		Args:    cli.OneArg,
	}
	c.Register(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		document, err := os.ReadFile(args[0])
		if err != nil {
			return fmt.Errorf("read classes: %w", err)
		}
		return cli.Show(c, cmd, http.MethodPut, "/classes", document, printClassList)
	}
	return cmd
}

func newClassesDeleteCommand() *cobra.Command {
	c := &cli.AdminClient{}
	cmd := &cobra.Command{
		Use:     "delete",
		Short:   "Take away all classes that were set at run time",
		Example: "  rankcache classes delete",
		Args:    cli.NoArgs,
	}
	c.Register(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.Delete(cmd, "/classes", "the classes that were set at run time are taken away on all processes")
	}
	return cmd
}

func printClassList(to io.Writer, list *roomsync.ClassList) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLASS\tPERIOD\tTZ\tMODE\tBOARD\tSOURCE")
	for _, c := range list.Classes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Period, c.TZ, c.Mode, c.Board, c.Source)
	}
	return table.Flush()
}
