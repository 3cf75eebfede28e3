package ledger

import (
	"cmp"
	"net/url"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"

	"rankcache/internal/watch"
)

// CertificateFiles returns the files that PostgreSQL's driver reads for a URL: authorities, and the
// client's certificate and key. Its driver reads them when it parses the URL.
func CertificateFiles(setting, rawURL string) (files []*watch.File[*watch.Certs]) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil
	}
	for name, variable := range map[string]string{"sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY"} {
		if path := cmp.Or(u.Query().Get(name), os.Getenv(variable)); path != "" && path != "system" {
			files = append(files, watch.Opaque(setting+" "+name, path))
		}
	}
	return files
}

// certificates are what TLS to PostgreSQL is made with.
type certificates struct {
	files []*watch.File[*watch.Certs]
	mu    sync.Mutex
	last  *pgx.ConnConfig // that was parsed while all files were whole
}

// now parses the URL again, with the files as they are; those that were good last stay in force while one is not.
func (c *certificates) now(rawURL string) *pgx.ConnConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	whole := len(c.files) > 0
	for _, f := range c.files {
		whole = f.Status().Error == "" && whole
	}
	if whole {
		if conf, err := pgx.ParseConfig(rawURL); err == nil {
			c.last = conf
		}
	}
	return c.last
}
