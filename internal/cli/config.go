package cli

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flag wins over its environment variable, that over the YAML file, under the same names: --redis-timeout,
// RANKCACHE_REDIS_TIMEOUT, redis-timeout. An unknown key is an error: no typing mistake becomes a default.
const (
	EnvPrefix   = "RANKCACHE_"
	kafkaPrefix = "kafka." // kafka.<key> is librdkafka's <key>
	flatKeys    = "\x00"   // a delimiter that no key has: names such as kafka.sasl.username are whole, not paths
)

// LoadConfig sets flags that were not typed from the environment or the file, and returns the kafka.* keys.
func LoadConfig(cmd *cobra.Command) (kafka map[string]string, err error) {
	k := koanf.New(flatKeys)
	path, _ := cmd.Flags().GetString("config")
	if path == "" {
		path = os.Getenv(EnvPrefix + "CONFIG")
	}
	if path != "" {
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			return nil, Usagef("configuration file %s: %w", path, err)
		}
	}
	if err := k.Load(env.Provider(flatKeys, env.Opt{Prefix: EnvPrefix, TransformFunc: EnvKey}), nil); err != nil {
		return nil, Usagef("environment: %w", err)
	}
	if err := checkKeys(cmd.Root(), k.Keys()); err != nil {
		return nil, err
	}
	return applyConfig(cmd, k)
}

// notOurs are variables with our prefix that Kubernetes injects for a Service so named, or that steer our tests.
var notOurs = regexp.MustCompile(`^RANKCACHE_(([A-Z0-9_]+_)?(PORT(_\d.*)?|SERVICE_(HOST|PORT.*))|TEST_.*|REQUIRE_REAL|FULL)$`)

// EnvKey turns RANKCACHE_REDIS_TIMEOUT into redis-timeout and RANKCACHE_KAFKA_SASL_USERNAME into kafka.sasl.username;
// that of a secret's file, RANKCACHE_KAFKA_SASL_PASSWORD_FILE, into kafka.sasl.password-file.
func EnvKey(name, value string) (string, any) {
	if notOurs.MatchString(name) {
		return "", nil // leaves it out
	}
	key := strings.ToLower(strings.TrimPrefix(name, EnvPrefix))
	if rest, ok := strings.CutPrefix(key, "kafka_"); ok {
		return kafkaPrefix + kafkaFile.ReplaceAllString(strings.ReplaceAll(rest, "_", "."), "$1"+fileSuffix), value
	}
	return strings.ReplaceAll(key, "_", "-"), value
}

// kafkaFile finds settings that name the file of a secret: librdkafka has others that end with ".file".
var kafkaFile = regexp.MustCompile(`(password|secret)\.file$`)

// checkKeys refuses keys that are no flag of any command: one file and one environment may serve them all.
func checkKeys(root *cobra.Command, keys []string) error {
	known := map[string]bool{"config": true}
	for _, cmd := range append(root.Commands(), root) {
		for _, sub := range append(cmd.Commands(), cmd) {
			sub.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
	}
	for _, key := range keys {
		if _, gone := goneSettings[key]; !gone && !known[key] && !strings.HasPrefix(key, kafkaPrefix) {
			return Usagef("unknown configuration key %q: rankcache serve --help and that of the other commands list the flags, whose names are the keys", key)
		}
	}
	return nil
}

// FromConfig has a command, one that asks another process, take its flags from the environment and the file, too.
func FromConfig(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := LoadConfig(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// typedFlag marks flags that only the command line sets: what an operator does once is no setting.
const typedFlag = "rankcache_typed"

// MarkTyped leaves the flags to the command line: environment and file do not set them.
func MarkTyped(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		annotate(flags.Lookup(name), typedFlag)
	}
}

func applyConfig(cmd *cobra.Command, k *koanf.Koanf) (map[string]string, error) {
	kafka := map[string]string{}
	for _, key := range k.Keys() {
		addGoneKey(cmd.Flags(), key)
		if name, ok := strings.CutPrefix(key, kafkaPrefix); ok {
			kafka[name] = k.String(key)
		}
	}
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if name, ok := strings.CutPrefix(f.Name, kafkaPrefix); ok {
			kafka[name] = f.Value.String()
		} else if _, typed := f.Annotations[typedFlag]; !typed && !f.Changed && k.Exists(f.Name) && err == nil {
			err = setFlag(cmd.Flags(), f, k.Get(f.Name))
		}
	})
	for key, value := range kafka {
		if secretKey.MatchString(key) && value == Masked {
			err = errors.Join(err, maskedError(kafkaPrefix+key))
		}
	}
	return kafka, errors.Join(err, checkTokens(kafka))
}

// checkTokens refuses settings of librdkafka that leave it without a source of tokens: it would wait for one for ever.
func checkTokens(kafka map[string]string) error {
	mechanism := cmp.Or(kafka["sasl.mechanism"], kafka["sasl.mechanisms"])
	if !strings.EqualFold(mechanism, "OAUTHBEARER") || strings.EqualFold(kafka["sasl.oauthbearer.method"], "oidc") || kafka["enable.sasl.oauthbearer.unsecure.jwt"] == "true" {
		return nil
	}
	return Usagef("kafka.sasl.mechanism OAUTHBEARER has no source of tokens: set kafka.sasl.oauthbearer.method=oidc, with its client id, secret and token endpoint URL")
}

func setFlag(flags *pflag.FlagSet, f *pflag.Flag, value any) error {
	text := fmt.Sprint(value)
	if list, ok := value.([]any); ok {
		if len(list) == 0 && f.DefValue == "[]" {
			return nil // of a map pflag takes no empty one
		}
		text = csvLine(list)
	}
	if IsSecret(f) && strings.Contains(text, Masked) {
		return maskedError(f.Name)
	}
	if err := flags.Set(f.Name, text); err != nil {
		return Usagef("configuration key %s: %w", f.Name, inOurWords(err))
	}
	return nil
}

// csvLine writes a list as the flags read it.
func csvLine(list []any) string {
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = fmt.Sprint(item)
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	_ = w.Write(items) // to memory
	w.Flush()
	return strings.TrimSuffix(line.String(), "\n")
}

// maskedError refuses what rankcache config has printed in place of a secret.
func maskedError(key string) error {
	return Usagef("configuration key %s: %s stands for a secret that was not printed: give the secret, or its file as %s%s", key, Masked, key, fileSuffix)
}

// AddKafkaFlags makes every --kafka.<key> on the command line a flag, so that librdkafka's settings need no list here.
func AddKafkaFlags(root *cobra.Command, args []string) error {
	cmd, _, err := root.Find(args)
	if err != nil {
		return &ExitError{ExitUsage, err}
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if strings.HasPrefix(arg, "--"+kafkaPrefix) && cmd.Flags().Lookup(name) == nil {
			cmd.Flags().String(name, "", "librdkafka setting")
		}
	}
	return nil
}
