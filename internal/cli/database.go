package cli

import (
	"github.com/spf13/pflag"

	"rankcache/ledger"
)

// defaultDatabase is the ledger's database.
const defaultDatabase = "postgres://rankcache@127.0.0.1:5432/rankcache"

// RegisterDatabase registers the URL of the ledger's database.
func RegisterDatabase(flags *pflag.FlagSet) *Secret {
	return SecretVar(flags, "database", defaultDatabase, "`URL` of the ledger's database: postgres://user:password@host:port/name or mysql://…, with options of its driver as query")
}

// OpenDatabase returns the ledger's database, which the caller closes.
func OpenDatabase(url *Secret) (*ledger.Store, error) {
	store, err := ledger.Open(url.Get(), url.Get)
	if err != nil {
		return nil, Usagef("--database: %w", err)
	}
	return store, nil
}
