package cli

import (
	"encoding/csv"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

func FlagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// shownNames returns the names of the settings among the flags. Kafka's have the values of LoadConfig.
func shownNames(flags *pflag.FlagSet) []string {
	return slices.DeleteFunc(FlagNames(flags), func(name string) bool {
		_, gone := flags.Lookup(name).Value.(*goneFlag)
		return gone || name == "help" || strings.HasPrefix(name, kafkaPrefix)
	})
}

// InForce returns the values of the flags and of Kafka's settings, by key: a text or, of a list, a list of texts.
func InForce(flags *pflag.FlagSet, names []string, kafka map[string]string) map[string]any {
	values := map[string]any{}
	for _, name := range names {
		values[name] = valueOf(flags.Lookup(name))
	}
	for key, value := range kafka {
		if secretKey.MatchString(key) && !strings.HasSuffix(key, fileSuffix) && value != "" {
			value = Masked
		}
		values[kafkaPrefix+key] = value
	}
	return values
}

const Masked = "****" // stands for a secret

// secretKey finds librdkafka settings that are or hold secrets.
var secretKey = regexp.MustCompile(`(?i)password|secret|token|\.pem$|key$|jaas|oauthbearer\.config`)

// valueOf returns the flag's value with secrets in it masked.
func valueOf(f *pflag.Flag) any {
	secret := IsSecret(f)
	switch f.Value.Type() {
	case "stringSlice", "stringToString":
		items := listOf(f)
		for i := range items {
			if secret {
				items[i] = Masked
			}
		}
		return items
	}
	value := f.Value.String()
	if u, err := url.Parse(value); !secret && (err != nil || u.User == nil) || value == "" {
		return value
	}
	return maskURL(value)
}

// listOf returns the items of a list, or the pairs of a map as key=value.
func listOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return slices.Clone(list.GetSlice())
	}
	line := strings.TrimSuffix(strings.TrimPrefix(f.Value.String(), "["), "]")
	items, _ := csv.NewReader(strings.NewReader(line)).Read() // as pflag has written it
	return append([]string{}, items...)
}

// maskURL masks the password of a URL and what its query names a secret, and the whole of anything else.
func maskURL(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return Masked
	}
	query := u.Query()
	for name := range query {
		if secretKey.MatchString(name) {
			query.Set(name, Masked)
			u.RawQuery = query.Encode()
		}
	}
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), Masked)
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(Masked), Masked)
}
