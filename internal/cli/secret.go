package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"

	"rankcache/internal/tick"
	"rankcache/internal/watch"
)

const (
	secretFlag = "rankcache_secret" // the annotation of flags whose value is never printed
	fileSuffix = "-file"            // makes the name of a secret setting that of its file
	maxSecret  = 64 << 10           // more than a password, a token or a URL has, in bytes
)

// MarkSecret keeps the flag's value out of rankcache config.
func MarkSecret(flags *pflag.FlagSet, name string) { annotate(flags.Lookup(name), secretFlag) }

// IsSecret reports whether the flag's value is never printed.
func IsSecret(f *pflag.Flag) bool {
	_, secret := f.Annotations[secretFlag]
	return secret
}

// Secret is a setting that is never printed: --name takes the value, --name-file a file with it, read again when it
// changes; it is the latter's [pflag.Value]. Concurrent use is safe once the flags are parsed.
type Secret struct {
	Flag *pflag.Flag         // --name
	file *watch.File[string] // nil: there is none
}

// SecretVar registers a secret setting that is one text.
func SecretVar(flags *pflag.FlagSet, name, value, usage string) *Secret {
	flags.String(name, value, usage)
	return SecretFile(flags, name, "read again when it changes")
}

// SecretFile makes a registered flag a secret setting. when tells when its file is read.
func SecretFile(flags *pflag.FlagSet, name, when string) *Secret {
	MarkSecret(flags, name)
	s := &Secret{Flag: flags.Lookup(name)}
	flags.Var(s, name+fileSuffix, "`file` that holds --"+name+"; "+when)
	return s
}

// String returns the path of the file.
func (s *Secret) String() string {
	if s.file == nil {
		return ""
	}
	return s.file.Path
}

func (s *Secret) Type() string { return "string" }

// Set takes the path of the file.
func (s *Secret) Set(path string) error {
	s.file = nil
	if path != "" {
		s.file = watch.New("--"+s.Flag.Name+fileSuffix, path, parseSecret)
	}
	return nil
}

// Get returns the value. A file that can no longer be read leaves the last one in force.
func (s *Secret) Get() string {
	switch {
	case s == nil:
		return "" // the command has no such setting
	case s.file == nil:
		return s.Flag.Value.String()
	}
	return s.file.Get()
}

// Lines returns the values of a list; in a file they stand one a line.
func (s *Secret) Lines() []string {
	if list, ok := s.Flag.Value.(pflag.SliceValue); ok && s.file == nil {
		return list.GetSlice()
	}
	return strings.FieldsFunc(s.Get(), func(r rune) bool { return r == '\n' || r == '\r' })
}

// load reads the file, also one that is read already. The error names flag and file.
func (s *Secret) load() error {
	switch {
	case s.file == nil:
		return nil
	case s.Flag.Changed:
		return fmt.Errorf("--%[1]s and --%[1]s%[2]s are both set: want one of them", s.Flag.Name, fileSuffix)
	}
	return s.file.Load()
}

// parseSecret returns a file's content, without the newline at its end.
func parseSecret(data []byte) (string, error) {
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))
	switch {
	case len(data) == 0:
		return "", errors.New("is empty")
	case len(data) > maxSecret:
		return "", fmt.Errorf("has more than %d KiB", maxSecret>>10)
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

func (all Secrets) load() error {
	var failed []error
	for _, s := range all {
		failed = append(failed, s.load())
	}
	return errors.Join(failed...)
}

func (all Secrets) files() (files []watch.Any) {
	for _, s := range all {
		if s.file != nil {
			files = append(files, s.file)
		}
	}
	return files
}

// readKafkaFiles replaces settings such as sasl.password-file by the file's content, and returns the files by setting.
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
		s := &Secret{Flag: &pflag.Flag{Name: kafkaPrefix + name, Changed: both}}
		_ = s.Set(path)
		if err := s.load(); err != nil {
			return nil, Usagef("%w", err)
		}
		kafka[name], files[name] = s.file.Get(), s
	}
	return files, nil
}

// The settings of librdkafka that may change while it runs.
const (
	saslUsername = "sasl.username"
	saslPassword = "sasl.password"
)

const loginEvery = time.Second // how often the files of Kafka's user name and password are read

// KafkaLogin returns what calls set for new credentials until ctx is done; nil if none of them is in a file.
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
