package operate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/internal/doctor"
)

// defaultDoctorTimeout bounds one check: the only sign of a missing Kafka is a time-out.
const defaultDoctorTimeout = 5 * time.Second

// examined are the settings of rankcache serve, which name what is checked.
type examined interface {
	Register(*pflag.FlagSet)
	Load(*cobra.Command) error
	// Dependencies returns the checks of what a sidecar with the settings depends on, in the order of
	// the report, and what closes their connections.
	Dependencies(roles []string, timeout time.Duration, database *cli.Secret) (checks []doctor.Check, end func(), err error)
}

// doctorOptions are the settings of rankcache doctor.
type doctorOptions struct {
	serve    examined
	roles    []string
	timeout  time.Duration
	database *cli.Secret // empty: the ledger is not checked
}

// DoctorReport is the stable JSON of rankcache doctor.
type DoctorReport struct {
	Failed   int              `json:"failed"`
	Warnings int              `json:"warnings"`
	Unknown  int              `json:"unknown"`
	Checks   []doctor.Finding `json:"checks"`
}

// NewDoctorCommand returns the command, which checks what the settings of serve name.
func NewDoctorCommand(serve examined) *cobra.Command {
	o := &doctorOptions{serve: serve}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that a sidecar depends on, with advice for each failure",
		Long: `Check Redis (address, TLS, user, ACL and commands, mode, eviction, clock, super-hot boards, when boards expire), Kafka (address,
user, topics of the super-hot boards, retention, replicas, clock), the cloud's
hot-key API, the profile service, the collector of traces, the folders of snapshots
and socket, memory, the limit of open files, ports and the rooms file, with the settings of rankcache serve.
With --database also the ledger: the server and its version, the tables' version, the
user's rights, the topic rank_updates and how far the ledger is behind it. It changes nothing, except for a file that it creates and removes in the folders. It
prints one line for each check, without secrets; every check has a deadline.

Exit codes: 0 nothing failed (there may be warnings), 1 something failed, 2 bad flag, 4 nothing failed, but what is
unknown could not be looked at, because a server did not answer or did not tell this user.`,
		Example: `  rankcache doctor --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache doctor --config rankcache.yaml --for serve,write,poll,controller,ledger -o json
  rankcache doctor --kafka kafka:9092 --redis redis://redis:6379 --database-file /run/secrets/database
  kubectl exec app-0 -c rankcache -- rankcache doctor`,
		Args: cli.NoArgs,
	}
	o.serve.Register(cmd.Flags())
	cmd.Flags().StringSliceVar(&o.roles, "for", []string{"serve"}, "`roles` whose Redis commands are checked: serve, keep, write, poll, controller, ledger (to rebuild what Redis has lost); for controller also whether the Kafka user may delete topics")
	cmd.Flags().DurationVar(&o.timeout, "timeout", defaultDoctorTimeout, "deadline of one check")
	o.database = cli.SecretVar(cmd.Flags(), "database", "", "`URL` of the ledger's database, to check the ledger, too: as of rankcache ledger")
	output := cli.OutputFlag(cmd.Flags(), "text")
	cmd.RunE = reporting(o.serve.Load, output, o.run)
	return cmd
}

func (o *doctorOptions) run(ctx context.Context, _ io.Writer) (*DoctorReport, error) {
	for _, role := range o.roles {
		if !slices.Contains([]string{"serve", "keep", "write", "poll", "controller", "ledger"}, role) {
			return nil, cli.Usagef("--for %q: want serve, keep, write, poll, controller or ledger", role)
		}
	}
	if o.timeout <= 0 {
		return nil, cli.Usagef("--timeout %v: want more than 0", o.timeout)
	}
	checks, end, err := o.serve.Dependencies(o.roles, o.timeout, o.database)
	if err != nil {
		return nil, err
	}
	defer end()
	report := &DoctorReport{}
	doctor.Run(ctx, checks, o.timeout, func(f doctor.Finding) {
		report.Checks = append(report.Checks, f)
		switch f.Status {
		case doctor.Fail:
			report.Failed++
		case doctor.Warn:
			report.Warnings++
		case doctor.Unknown:
			report.Unknown++
		}
	})
	return report, nil
}

func (r *DoctorReport) err() error {
	switch {
	case r.Failed > 0:
		return fmt.Errorf("doctor: %d of %d checks failed", r.Failed, len(r.Checks))
	case r.Unknown > 0:
		return &cli.ExitError{Code: cli.ExitUnasked, Err: fmt.Errorf("doctor: %d of %d checks could not look", r.Unknown, len(r.Checks))}
	}
	return nil
}

func (r *DoctorReport) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range r.Checks {
		fmt.Fprintf(table, "%s\t%s\t%s\n", strings.ToUpper(string(f.Status)), f.Check, f.Advice)
	}
	fmt.Fprintf(table, "\n%d checks, %d failed, %d warnings, %d unknown\n", len(r.Checks), r.Failed, r.Warnings, r.Unknown)
	return table.Flush()
}
