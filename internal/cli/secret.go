package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"

	"rankcache/internal/tick"
)

const (
	// secretFlag is the annotation of flags whose value is never printed.
	secretFlag = "rankcache_secret"
	// fileSuffix makes the name of a secret setting that of its file.
	fileSuffix = "-file"
	// maxSecret is more than a password, a token or a URL has, in bytes.
	maxSecret = 64 << 10
)

// MarkSecret keeps the flag's value out of rankcache config.
func MarkSecret(flags *pflag.FlagSet, name string) {
	annotate(flags.Lookup(name), secretFlag)
}

// IsSecret reports whether the flag's value is never printed.
func IsSecret(f *pflag.Flag) bool {
	_, secret := f.Annotations[secretFlag]
	return secret
}

// Secret is a setting whose value is never printed: --name takes the value,
// --name-file a file that holds it and is read again when it has changed. It is
// the [pflag.Value] of the latter. Its methods may be called concurrently once
// the flags are parsed.
type Secret struct {
	Flag *pflag.Flag // --name
	path string
	log  *slog.Logger // nil: failures to read the file again are not logged

	mu      sync.Mutex
	info    fs.FileInfo // of the file that was read; nil: to be read
	content string
	failed  string // the last failure that was logged
}

// SecretVar registers a secret setting that is one text.
func SecretVar(flags *pflag.FlagSet, name, value, usage string) *Secret {
	flags.String(name, value, usage)
	return SecretFile(flags, name, "read again when it changes")
}

// SecretFile makes a registered flag a secret setting. when tells when its file
// is read.
func SecretFile(flags *pflag.FlagSet, name, when string) *Secret {
	MarkSecret(flags, name)
	s := &Secret{Flag: flags.Lookup(name)}
	flags.Var(s, name+fileSuffix, "`file` that holds --"+name+"; "+when)
	return s
}

// String returns the path of the file.
func (s *Secret) String() string { return s.path }

// Type is that of a path.
func (s *Secret) Type() string { return "string" }

// Set takes the path of the file.
func (s *Secret) Set(path string) error {
	s.path = path
	return nil
}

// Get returns the value. A file that can no longer be read leaves the last one
// in force.
func (s *Secret) Get() string {
	if s == nil {
		return "" // the command has no such setting
	}
	if s.path == "" {
		return s.Flag.Value.String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refresh()
	if err == nil {
		s.failed = ""
	} else if s.log != nil && s.failed != err.Error() {
		s.failed = err.Error()
		s.log.Error("secret can't be read again, the last one stays in force", "err", err)
	}
	return s.content
}

// Lines returns the values of a list; in a file they stand one a line.
func (s *Secret) Lines() []string {
	if list, ok := s.Flag.Value.(pflag.SliceValue); ok && s.path == "" {
		return list.GetSlice()
	}
	return strings.FieldsFunc(s.Get(), func(r rune) bool { return r == '\n' || r == '\r' })
}

// refresh reads the file unless it is as it was when it was last read. mu is held.
func (s *Secret) refresh() error {
	info, err := os.Stat(s.path)
	if err == nil && s.info != nil && os.SameFile(info, s.info) && info.ModTime().Equal(s.info.ModTime()) && info.Size() == s.info.Size() {
		return nil
	}
	content, err := readSecret(s.path)
	if err != nil {
		return fmt.Errorf("--%s%s: %w", s.Flag.Name, fileSuffix, err)
	}
	s.info, s.content = info, content
	return nil
}

// load reads the file, also one that is read already. The error names flag and file.
func (s *Secret) load() error {
	if s.path == "" {
		return nil
	}
	if s.Flag.Changed {
		return fmt.Errorf("--%[1]s and --%[1]s%[2]s are both set: want one of them", s.Flag.Name, fileSuffix)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = nil
	return s.refresh()
}

// readSecret returns a file's content, without the newline at its end.
func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	switch {
	case err != nil:
		return "", err
	case len(data) == 0:
		return "", fmt.Errorf("%s is empty", path)
	case len(data) > maxSecret:
		return "", fmt.Errorf("%s has more than %d KiB", path, maxSecret>>10)
	}
	return string(data), nil
}

// Secrets are the secret settings of one command.
type Secrets []*Secret

// SecretsOf returns the secret settings among the flags, their files read.
func SecretsOf(flags *pflag.FlagSet) (all Secrets, err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if s, ok := f.Value.(*Secret); ok {
			all = append(all, s)
		}
	})
	if err := all.load(); err != nil {
		return nil, Usagef("%w", err)
	}
	return all, nil
}

// load reads all files again.
func (all Secrets) load() error {
	var failed []error
	for _, s := range all {
		failed = append(failed, s.load())
	}
	return errors.Join(failed...)
}

// LogTo has failures to read a file again logged.
func (all Secrets) LogTo(log *slog.Logger) {
	for _, s := range all {
		s.log = log
	}
}

// readKafkaFiles replaces librdkafka's settings that name a secret's file, such as
// sasl.password-file, by the file's content, and returns the files by setting.
func readKafkaFiles(kafka map[string]string) (map[string]*Secret, error) {
	files := map[string]*Secret{}
	for key, path := range kafka {
		name, ok := strings.CutSuffix(key, fileSuffix)
		if !ok {
			continue
		}
		delete(kafka, key)
		if path == "" {
			continue
		}
		_, both := kafka[name]
		s := &Secret{Flag: &pflag.Flag{Name: kafkaPrefix + name, Changed: both}, path: path}
		if err := s.load(); err != nil {
			return nil, Usagef("%w", err)
		}
		kafka[name], files[name] = s.content, s
	}
	return files, nil
}

// The settings of librdkafka that may change while it runs.
const (
	saslUsername = "sasl.username"
	saslPassword = "sasl.password"
)

// loginEvery is how often the files of Kafka's user name and password are read.
const loginEvery = time.Second

// KafkaLogin returns the function that replay and writer call for new credentials, nil if none of
// them is in a file. It calls set when one of the files has changed, until ctx is done.
func (o *Options) KafkaLogin(log *slog.Logger) func(context.Context, func(username, password string) error) {
	if o.kafkaFiles[saslUsername] == nil && o.kafkaFiles[saslPassword] == nil {
		return nil
	}
	return func(ctx context.Context, set func(username, password string) error) {
		username, password, failed := o.KafkaKeys[saslUsername], o.KafkaKeys[saslPassword], rate.Sometimes{Interval: time.Minute}
		for range tick.Every(ctx, loginEvery) {
			now := o.kafkaNow()
			if now[saslUsername] == username && now[saslPassword] == password {
				continue
			}
			if err := set(now[saslUsername], now[saslPassword]); err != nil {
				failed.Do(func() { log.Error("kafka: the new secret can't be used, the last one stays in force", "err", err) })
				continue
			}
			username, password = now[saslUsername], now[saslPassword]
			log.Info("kafka: new connections log in with the new secret")
		}
	}
}

// kafkaNow returns librdkafka's settings, with those in files as these are now.
func (o *Options) kafkaNow() map[string]string {
	keys := maps.Clone(o.KafkaKeys)
	for name, file := range o.kafkaFiles {
		keys[name] = file.Get()
	}
	return keys
}
