package cli

import (
	"github.com/spf13/pflag"

	"rankcache/internal/watch"
	"rankcache/ledger"
)

// defaultDatabase is the ledger's database.
const defaultDatabase = "postgres://rankcache@127.0.0.1:5432/rankcache"

// RegisterDatabase registers the URL of the ledger's database.
func RegisterDatabase(flags *pflag.FlagSet) *Secret {
	return SecretVar(flags, "database", defaultDatabase, "`URL` of the ledger's database: postgres://user:password@host:port/name or mysql://…, with options of its driver as query")
}

// OpenDatabase returns the ledger's database, which the caller closes. o, if not nil, watches its certificates.
func OpenDatabase(o *Options, url *Secret) (*ledger.Store, error) {
	store, err := ledger.Open(url.Get(), url.Get, o.DatabaseFiles("database", url.Get())...)
	if err != nil {
		return nil, Usagef("--database: %w", err)
	}
	return store, nil
}

// DatabaseFiles returns the certificates of a database, watched.
func (o *Options) DatabaseFiles(setting, url string) []*watch.File[*watch.Certs] {
	files := ledger.CertificateFiles(setting, url)
	for _, f := range files {
		_ = f.Load() // its driver tells
		if o != nil {
			o.Watch(f)
		}
	}
	return files
}
