package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"rankcache/internal/cli"
	"rankcache/internal/run"
	"rankcache/internal/serve"
)

// runConfig returns what rankcache config prints, by key.
func runConfig(t *testing.T, args ...string) (map[string]any, error) {
	t.Helper()
	var out bytes.Buffer
	if err := cli.Run(context.Background(), NewCommand(), append([]string{"config"}, args...), &out, &out); err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(out.Bytes(), &values); err != nil {
		t.Fatalf("%v in:\n%s", err, out.String())
	}
	return values, nil
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rankcache.yaml")
	content := "redis-timeout: 1s\ndrain: 2s\ndata: 127.0.0.1:1\nkafka.linger.ms: 7\nkafka.acks: all\nallow-host: [a, b]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RANKCACHE_DRAIN", "3s")
	t.Setenv("RANKCACHE_DATA", "127.0.0.1:2")
	t.Setenv("RANKCACHE_KAFKA_ACKS", "1")
	t.Setenv("RANKCACHE_PORT_8972_TCP_ADDR", "10.0.0.1") // what Kubernetes adds for a Service of this name
	got, err := runConfig(t, "--config", file, "--data", "127.0.0.1:3", "--kafka.security.protocol=ssl")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"redis-timeout":           "1s",
		"drain":                   "3s",
		"data":                    "127.0.0.1:3",
		"admin":                   "127.0.0.1:8971",
		"allow-host":              []any{"a", "b"},
		"kafka.linger.ms":         "7",
		"kafka.acks":              "1",
		"kafka.security.protocol": "ssl",
	} {
		if !reflect.DeepEqual(got[key], want) {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

func TestUnknownKeysAreErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rankcache.yaml")
	if err := os.WriteFile(file, []byte("redis-timout: 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func(t *testing.T) error{
		"file": func(t *testing.T) error { _, err := runConfig(t, "--config", file); return err },
		"environment": func(t *testing.T) error {
			t.Setenv("RANKCACHE_REDIS_TIMOUT", "1s")
			_, err := runConfig(t)
			return err
		},
		"flag":      func(t *testing.T) error { _, err := runConfig(t, "--redis-timout", "1s"); return err },
		"bad value": func(t *testing.T) error { t.Setenv("RANKCACHE_DRAIN", "soon"); _, err := runConfig(t); return err },
		"no file":   func(t *testing.T) error { _, err := runConfig(t, "--config", file+".none"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := try(t)
			var exit *cli.ExitError
			if !errors.As(err, &exit) || exit.Code != cli.ExitUsage {
				t.Errorf("got %v, want a usage error", err)
			}
		})
	}
}

func TestConfigMasksSecrets(t *testing.T) {
	t.Setenv("RANKCACHE_KAFKA_SASL_PASSWORD", "hush-1")
	got, err := runConfig(t, "--redis", "rediss://app:hush-2@redis:6379/1?dial_timeout=1s", "--admin-token", "hush-3",
		"--kafka.ssl.key.password=hush-4", "--profile-url", "https://u:hush-5@profiles/x")
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range got {
		if strings.Contains(fmt.Sprint(value), "hush") {
			t.Errorf("%s shows its secret: %s", key, value)
		}
	}
	if written, err := runConfig(t, "write", "--write-token", "hush-6"); err != nil || written["write-token"] != cli.Masked {
		t.Errorf("write-token is %q, %v", written["write-token"], err)
	}
	if want := "rediss://app:****@redis:6379/1?dial_timeout=1s"; got["redis"] != want {
		t.Errorf("the Redis URL is masked beyond its password: %s", got["redis"])
	}
}

// A Service named rankcache-kafka in the pod's namespace once kept the sidecar
// from starting: its variables were taken for unknown settings.
func TestVariablesOfServicesAreNoSettings(t *testing.T) {
	for _, name := range []string{"RANKCACHE_SERVICE_HOST", "RANKCACHE_PORT", "RANKCACHE_WRITER_SERVICE_PORT_HTTP",
		"RANKCACHE_KAFKA_PORT_9092_TCP_ADDR", "RANKCACHE_KAFKA_SERVICE_HOST", "RANKCACHE_REDIS_PORT"} {
		t.Setenv(name, "tcp://10.0.0.1:9092")
	}
	got, err := runConfig(t)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range got {
		if strings.Contains(fmt.Sprint(value), "10.0.0.1") {
			t.Errorf("%s is %q", key, value)
		}
	}
}

// TestConfigIsReadBack: what rankcache config prints is a configuration file with
// the same effect, with every setting as it is by default and changed.
func TestConfigIsReadBack(t *testing.T) {
	for _, command := range []*cobra.Command{serve.NewCommand(), run.NewWriteCommand(), run.NewPollCommand()} {
		name := strings.TrimPrefix(command.Name(), "serve")
		defaults := roundTrip(t, name)
		changed := []string{"--kafka.linger.ms=7", "--kafka.sasl.password-file=/run/secrets/kafka"}
		command.Flags().VisitAll(func(f *pflag.Flag) {
			if !cli.IsSecret(f) {
				changed = append(changed, "--"+f.Name+"="+otherValue(f))
			}
		})
		got := roundTrip(t, name, changed...)
		for key, value := range defaults {
			if command.Flags().Lookup(key).Annotations == nil && reflect.DeepEqual(got[key], value) {
				t.Errorf("%s: %s was changed and is still %v", command.Name(), key, value)
			}
		}
	}
}

// roundTrip prints the configuration of a command, has it read back and printed
// again, and returns it.
func roundTrip(t *testing.T, command string, args ...string) map[string]any {
	t.Helper()
	args = append(strings.Fields(command), args...)
	printed, err := runConfig(t, args...)
	must(t, err)
	file := filepath.Join(t.TempDir(), "rankcache.yaml")
	text, err := yaml.Marshal(printed)
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
	again, err := runConfig(t, append(strings.Fields(command), "--config", file)...)
	must(t, err)
	if !reflect.DeepEqual(again, printed) {
		t.Errorf("%s %v:\n%v\nis read back as\n%v", command, args, printed, again)
	}
	return printed
}

// otherValue returns a value that is not the flag's default.
func otherValue(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return fmt.Sprint(f.DefValue != "true")
	case "duration":
		return "1h2m3.004s"
	case "int", "int64", "uint":
		return "1234567"
	case "float64":
		return "0.0625"
	case "stringSlice":
		return `a,"b, c","d ""e"""`
	case "stringToString":
		return "retention.ms=1,cleanup.policy=delete"
	case "word":
		words := f.Value.(*cli.Choice).Words
		return words[len(words)-1]
	}
	return "[x, y]: 'z' # 1"
}

// TestMaskedSecretsAreRefused: a password that is asterisks would only fail later.
func TestMaskedSecretsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"--redis", "redis://app:hush@redis:6379"}, {"--profile-header", "A: hush"}, {"--kafka.sasl.password=hush"}} {
		printed, err := runConfig(t, args...)
		must(t, err)
		file := filepath.Join(t.TempDir(), "rankcache.yaml")
		text, err := yaml.Marshal(printed)
		must(t, err)
		must(t, os.WriteFile(file, text, 0o600))
		if _, err := runConfig(t, "--config", file); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), cli.Masked) {
			t.Errorf("%v: got %v, want a usage error", args, err)
		}
	}
}

// One file may hold the settings of several commands.
func TestConfigOfEveryLongRunningCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rankcache.yaml")
	if err := os.WriteFile(file, []byte("group: g1\ndrain: 2s\npoll-every: 3s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string][2]string{"write": {"group", "g1"}, "poll": {"poll-every", "3s"}, "controller": {"group", "g1"}} {
		got, err := runConfig(t, command, "--config", file)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		} else if got[want[0]] != want[1] {
			t.Errorf("%s: %s is %q, want %q", command, want[0], got[want[0]], want[1])
		}
	}
}

// A setting that makes no sense once ended serve with a panic in its clean-up.
func TestBadSettingsEndWithTheirName(t *testing.T) {
	for name, args := range map[string][]string{
		"hot":          {"serve", "--hot-promote-rate", "0.5"},
		"total":        {"serve", "--total", "sum"},
		"rooms":        {"serve", "--rooms", "/nowhere/rooms.yaml"},
		"redis":        {"serve", "--redis", "not a url"},
		"redis://":     {"serve", "--redis", "foo"},
		"300MiB":       {"serve", "--memory-budget", "300"},
		"snapshot-dir": {"serve", "--snapshot-dir", "/proc/rankcache"},
		"hot-source":   {"serve", "--hot-source", "oracle"},
		"board life":   {"write", "--kafka", "127.0.0.1:1", "--board-life", "-1s"},
		"log-format":   {"write", "--log-format", "xml"},
		"topic keep":   {"controller", "--kafka", "127.0.0.1:1", "--topic-keep", "1s"},
		"nothing":      {"poll", "--hot-source", "none"},
		"otlp":         {"serve", "--otlp-endpoint", "collector:4318"},
		"profile-url":  {"serve", "--profile-url", "http://x/", "--profile-redis-key", "p:<member>"},
	} {
		args = append(args, "--health", "127.0.0.1:0")
		var out bytes.Buffer
		err := cli.Run(t.Context(), NewCommand(), args, &out, &out)
		if cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: got %v (exit code %d), want a usage error that names %q", args, err, cli.ExitCode(err), name)
		}
	}
}

func TestEnvironmentNamesGoBothWays(t *testing.T) {
	for _, cmd := range NewCommand().Commands() {
		for _, name := range cli.FlagNames(cmd.Flags()) {
			variable := cli.EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			if got, _ := cli.EnvKey(variable, ""); got != name {
				t.Errorf("%s is read back as %q", variable, got)
			}
		}
	}
}
