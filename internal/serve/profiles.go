package serve

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/origin"
	"rankcache/profile"
)

// profileOptions configures where nicks and avatars come from.
type profileOptions struct {
	url      *cli.Secret
	headers  *cli.Secret
	redisKey string
	redisAs  string
	budgetMB int64
	cache    profile.Options
}

func (o *profileOptions) register(flags *pflag.FlagSet) {
	flags.String("profile-url", "", "`URL` of the profile service, called by POST; empty: see --profile-redis-key")
	o.url = cli.SecretFile(flags, "profile-url", "read again when it changes")
	flags.StringSlice("profile-header", nil, "`header` of each request to the profile service, as \"Name: value\"")
	o.headers = cli.SecretFile(flags, "profile-header", "one a line, read again when it changes")
	flags.StringVar(&o.redisKey, "profile-redis-key", "", "Redis key `pattern` of a profile, such as profile:<member>; empty: see --profile-url")
	cli.ChoiceVar(flags, &o.redisAs, "profile-redis-type", "", profile.RedisString, "what such a key is: string (a JSON object) or hash", profile.RedisString, profile.RedisHash)
	flags.Int64Var(&o.budgetMB, "profile-budget-mib", profile.DefaultBudget>>20, "heap that profiles may take, in `MiB`")
	flags.DurationVar(&o.cache.TTL, "profile-ttl", profile.DefaultTTL, "how long a profile is fresh")
	flags.DurationVar(&o.cache.NegativeTTL, "profile-negative-ttl", profile.DefaultNegativeTTL, "how long an unknown member stays unknown")
	flags.DurationVar(&o.cache.StaleFor, "profile-stale-for", profile.DefaultStaleFor, "how long an expired profile is still served while it is refreshed")
	flags.DurationVar(&o.cache.Deadline, "profile-deadline", profile.DefaultDeadline, "longest that a page waits for profiles")
	flags.DurationVar(&o.cache.CallTimeout, "profile-timeout", profile.DefaultCallTimeout, "deadline of one call of the profile service")
}

func (o *profileOptions) source(redis profile.Pipeliner) (profile.Source, error) {
	switch url := o.url.Get(); {
	case url != "" && o.redisKey != "":
		return nil, cli.Usagef("--profile-url and --profile-redis-key: want one of them")
	case url != "":
		current := func() (string, http.Header) { return o.url.Get(), o.header() } // their files may have changed
		return profile.NewHTTP(profile.HTTPOptions{URL: url, Current: current, Timeout: o.cache.CallTimeout, Connections: o.cache.Calls})
	case o.redisKey != "":
		return profile.NewRedis(redis, profile.RedisOptions{Key: o.redisKey, Type: o.redisAs})
	}
	return nil, nil
}

func (o *profileOptions) header() http.Header {
	header := http.Header{}
	for _, line := range o.headers.Lines() {
		name, value, _ := strings.Cut(line, ":")
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return header
}

type runFunc func(context.Context) error

func (f runFunc) Run(ctx context.Context) error { return f(ctx) }

// background is a part whose calls of Redis wait while that is busy.
func background(f runFunc) runFunc {
	return func(ctx context.Context) error { return f(origin.Background(ctx)) }
}
