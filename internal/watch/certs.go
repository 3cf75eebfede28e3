package watch

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Certs are the certificates of a file.
type Certs struct {
	Pool *x509.CertPool
	Ends time.Time // the first of them; zero: there is none, as in the file of a key
}

// Certificates returns a file of PEM certificates.
func Certificates(setting, path string) *File[*Certs] {
	return New(setting, path, func(content []byte) (*Certs, error) {
		c, err := parsePEM(content)
		if err == nil && c.Ends.IsZero() {
			err = errors.New("has no PEM certificate")
		}
		return c, err
	})
}

// Opaque returns a file of which only changes are seen, such as a keystore.
func Opaque(setting, path string) *File[*Certs] {
	return New(setting, path, func(content []byte) (*Certs, error) {
		if bytes.Contains(content, []byte("-----BEGIN ")) {
			return parsePEM(content)
		}
		return &Certs{}, notEmpty(content)
	})
}

func notEmpty(content []byte) error {
	if len(bytes.TrimSpace(content)) == 0 {
		return errors.New("is empty")
	}
	return nil
}

// parsePEM takes only what is whole: of a file that is half written Go would take the first half.
func parsePEM(content []byte) (*Certs, error) {
	c := &Certs{Pool: x509.NewCertPool()}
	blocks, rest := 0, content
	for block := (*pem.Block)(nil); ; blocks++ {
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a bad certificate: %w", err)
		}
		c.Pool.AddCert(cert)
		if c.Ends.IsZero() || cert.NotAfter.Before(c.Ends) {
			c.Ends = cert.NotAfter
		}
	}
	begun := bytes.Count(content, []byte("-----BEGIN "))
	if cut := bytes.HasPrefix(rest, []byte("-")) || bytes.Contains(rest, []byte("\n-")); blocks == 0 || begun != blocks || cut {
		return nil, fmt.Errorf("is no whole PEM: %d blocks begin in it, and %d are whole", begun, blocks)
	}
	return c, nil
}

// RootsOf returns what gives the authorities of a file, as [crypto/tls.Config] has them.
func RootsOf(f *File[*Certs]) func() *x509.CertPool {
	return func() *x509.CertPool { return f.Get().Pool }
}
