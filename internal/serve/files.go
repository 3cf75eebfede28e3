package serve

import (
	"errors"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/replay"
	"rankcache/replay/files"
)

// snapshotOptions configures whether boards are kept in files over a restart.
type snapshotOptions struct {
	dir    string
	every  time.Duration
	maxAge time.Duration
}

func (o *snapshotOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "snapshot-dir", "", "`folder`, of this sidecar alone, in which super-hot boards, and the pages of hot ones, are kept over a restart; empty: they are not")
	flags.DurationVar(&o.every, "snapshot-every", replay.DefaultSaveEvery, "how often each board is saved there, give or take a tenth; also at the end")
	flags.DurationVar(&o.maxAge, "snapshot-max-age", replay.DefaultMaxStale, "greatest age at which a saved board is answered from while Redis can't be read; older ones only speed up the start")
}

// newStore returns the files that boards are kept in, nil if none are.
func (o *snapshotOptions) newStore(reg prometheus.Registerer) (*files.Store, error) {
	if o.dir == "" {
		return nil, nil
	}
	return files.New(o.dir, reg)
}

// check makes the folder if need be, and a file in it for a moment.
func (o *snapshotOptions) check() error {
	if o.dir == "" {
		return nil
	}
	err := os.MkdirAll(o.dir, 0o700)
	if err == nil {
		err = tryWriting(o.dir)
	}
	if err != nil {
		return cli.Usagef("--snapshot-dir: %w: check that this user may write there and that the volume is not mounted read-only", err)
	}
	return nil
}

func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, "writable.*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
