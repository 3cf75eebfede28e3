package serve

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/replay"
	"rankcache/replay/files"
)

// snapshotOptions configures whether boards are kept in files over a restart.
type snapshotOptions struct {
	dir    string
	every  time.Duration
	maxAge time.Duration
	shared *cli.Secret
}

func (o *snapshotOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "snapshot-dir", "", "`folder`, of this sidecar alone, in which super-hot boards, and the pages of hot ones, are kept over a restart; empty: they are not")
	flags.DurationVar(&o.every, "snapshot-every", replay.DefaultSaveEvery, "how often each board is saved there, give or take a tenth; also at the end")
	flags.DurationVar(&o.maxAge, "snapshot-max-age", replay.DefaultMaxStale, "greatest age at which a saved board is answered from while Redis can't be read; older ones only speed up the start")
	o.shared = cli.SecretVar(flags, "snapshots", "", "`URL` of the folder or bucket in which rankcache keep saves the fleet's boards, read at the start of each: file:///folder or s3://key:secret@host:port/bucket/prefix, with ?tls=false and region=… as options; empty: there are none")
}

// newStore returns the files that boards are kept in, nil if none are.
func (o *snapshotOptions) newStore(reg prometheus.Registerer) (*files.Store, error) {
	if o.dir == "" {
		return nil, nil
	}
	return files.New(o.dir, reg)
}

// newShared returns the fleet's snapshots, nil if there are none.
func (o *snapshotOptions) newShared(topic func(rankcache.BoardID) string, log *slog.Logger, reg prometheus.Registerer) (*files.Shared, error) {
	store, err := cli.OpenObjects(o.shared, log)
	if store == nil || err != nil {
		return nil, err
	}
	return files.NewShared(store, topic, reg)
}

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
