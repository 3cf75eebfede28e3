package cli

import (
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/roomsync"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/wire"
)

// Options are the settings that every long-running command shares.
type Options struct {
	RedisOptions
	Kafka      string
	KafkaKeys  map[string]string  // kafka.* without the prefix
	kafkaFiles map[string]*Secret // of those that came from files
	Rooms      string
	ParseRooms func([]byte) (*rooms.File, error) // nil: [rooms.Parse]
	Names      wire.Names
	logSize    string
	logLevel   string
	logFormat  string
	events     eventRing
	process    *process       // nil: standard error is none of a process's
	shown      map[string]any // what rankcache config prints
	Secrets    Secrets

	ReadTimeout time.Duration // of a request over HTTP; 0: the default
}

// Register registers the flags.
func (o *Options) Register(flags *pflag.FlagSet) {
	o.RegisterRedis(flags)
	flags.StringVar(&o.Kafka, "kafka", "", "Kafka `brokers`, comma-separated; empty: none, and no board is kept whole in memory but with --log redis. kafka.<key> passes any librdkafka setting, such as --kafka.security.protocol=sasl_ssl")
	flags.StringVar(&o.Rooms, "rooms", "", "rooms `file` (YAML); read again while running")
	Group(flags, "Redis, Kafka, rooms")
	o.RegisterNames(flags)
	Group(flags, "Names of keys and topics")
	ChoiceVar(flags, &o.logLevel, "log-level", "", "info", "lowest level that is logged: debug, info, warn or error", "debug", "info", "warn", "error")
	ChoiceVar(flags, &o.logFormat, "log-format", "", "text", "how the log is written: text or json", "text", "json")
	Group(flags, "Log")
}

// RegisterNames registers the names of keys and topics.
func (o *Options) RegisterNames(flags *pflag.FlagSet) {
	o.Names = wire.DefaultNames()
	flags.StringVar(&o.Names.Board, "key-board", o.Names.Board, "Redis key `pattern` of a board's sorted set")
	flags.StringVar(&o.Names.Meta, "key-meta", o.Names.Meta, "Redis key `pattern` of a board's state: run, seq, sum, members and more")
	flags.StringVar(&o.Names.Orders, "key-orders", o.Names.Orders, "Redis key `pattern` of the hashes of a board's applied order ids")
	flags.StringVar(&o.Names.Room, "key-room", o.Names.Room, "Redis key `pattern` of the set of boards running in a room")
	flags.StringVar(&o.Names.Rooms, "key-rooms", o.Names.Rooms, "Redis `key` of the hash of rooms that are set at run time")
	flags.StringVar(&o.Names.Ends, "key-ends", o.Names.Ends, "Redis `key` of the index of boards that are to be closed")
	flags.StringVar(&o.Names.Controller, "key-controller", o.Names.Controller, "Redis `key` of the lease of the controller that works")
	flags.StringVar(&o.Names.Hot, "key-hot", o.Names.Hot, "Redis key `pattern` of the shared hot-key verdict")
	flags.StringVar(&o.Names.States, "key-states", o.Names.States, "beginning, a `pattern`, of the Redis keys of the fleet's keeper: the states of all super-hot boards, its lease, and what sidecars report")
	flags.StringVar(&o.Names.Commands, "topic-commands", o.Names.Commands, "Kafka topic of commands")
	flags.StringVar(&o.Names.Refused, "topic-refused", o.Names.Refused, "Kafka topic of the commands that are refused")
	flags.StringVar(&o.Names.ClassPrefix, "topic-class-updates", o.Names.ClassPrefix, "beginning of the Kafka topic of the updates of a class and day")
	flags.StringVar(&o.Names.Finals, "topic-finals", o.Names.Finals, "Kafka topic of the results of closed boards")
	flags.StringVar(&o.Names.Ledger, "topic-ledger", o.Names.Ledger, "Kafka topic of all changes of the boards that are kept in the ledger")
	flags.StringVar(&o.Names.UpdatePrefix, "topic-updates", o.Names.UpdatePrefix, "beginning of the Kafka topic of each board's updates")
}

// Load reads the configuration into the flags of cmd and checks what is common.
func (o *Options) Load(cmd *cobra.Command) (err error) {
	if o.KafkaKeys, err = LoadConfig(cmd); err != nil {
		return err
	}
	if err := o.ReadSecrets(cmd.Flags()); err != nil {
		return err
	}
	if err := o.Names.Check(); err != nil {
		return Usagef("%w", err)
	}
	return nil
}

// ReadSecrets keeps what may be shown of the settings, and reads the files of all secret ones.
func (o *Options) ReadSecrets(flags *pflag.FlagSet) (err error) {
	o.shown = InForce(flags, shownNames(flags), o.KafkaKeys) // before files of Kafka's secrets are read
	if o.Secrets, err = SecretsOf(flags); err != nil {
		return err
	}
	o.kafkaFiles, err = readKafkaFiles(o.KafkaKeys)
	o.Secrets = slices.AppendSeq(o.Secrets, maps.Values(o.kafkaFiles))
	o.Watch(o.Secrets.files()...)
	o.watchKafka(o.KafkaKeys)
	return err
}

// KafkaSettings returns librdkafka's settings, with the brokers.
func (o *Options) KafkaSettings() map[string]string {
	settings := map[string]string{"bootstrap.servers": o.Kafka}
	maps.Copy(settings, o.KafkaKeys)
	return settings
}

// HasKafka reports whether brokers are named.
func (o *Options) HasKafka() bool { return o.KafkaSettings()["bootstrap.servers"] != "" }

// Where the log of changes may be.
const LogKafka, LogRedis, LogBoth = "kafka", "redis", "both"

// LogInRedis reports whether Redis has the log of changes.
func (o *RedisOptions) LogInRedis() bool { return o.Log == LogRedis || o.Log == LogBoth }

// RegisterLog registers where the log of changes is that boards are filled from.
func (o *Options) RegisterLog(flags *pflag.FlagSet) {
	ChoiceVar(flags, &o.Log, "log", "", LogKafka, "where the log of changes is that whole boards are filled from: kafka (--kafka), or redis, where rankcache write --log redis keeps it; --redis-mode is then single or sentinel", LogKafka, LogRedis)
}

// RegisterLogSize registers how large the log in Redis may be.
func (o *Options) RegisterLogSize(flags *pflag.FlagSet) {
	flags.StringVar(&o.logSize, "log-size", "64MiB", "about how many `bytes` the log in Redis may have: sidecars that were away for longer than it reaches read boards anew")
}

// LogBytes returns how large the log in Redis may be.
func (o *Options) LogBytes() (int64, error) {
	bytes, err := humanize.ParseBytes(o.logSize)
	if err != nil || bytes < minLogSize || bytes > math.MaxInt64 {
		return 0, Usagef("--log-size %q: want bytes such as 64MiB, and at least 1MiB", o.logSize)
	}
	return int64(bytes), nil
}

const minLogSize = 1 << 20 // in bytes: a smaller number lacks its unit by mistake

// HasLog reports whether there is a log of changes that whole boards can be filled from.
func (o *Options) HasLog() bool { return o.LogInRedis() || o.HasKafka() }

// CheckLog refuses a rooms file that needs a log of changes, or Kafka, that there is not.
func (o *Options) CheckLog(f *rooms.File) error {
	switch {
	case o.HasKafka():
		return nil
	case o.HasLog():
		return f.CheckWithoutKafka()
	}
	return f.CheckWithoutLog()
}

// NeedKafka refuses settings without brokers for a command, and what it does with Kafka.
func (o *Options) NeedKafka(command, what string) error {
	if o.HasKafka() {
		return nil
	}
	return Usagef("rankcache %s needs Kafka, %s: name its brokers, --kafka host:port[,host:port]", command, what)
}

// SharedRooms is the hash of rooms that are set at run time.
func (o *Options) SharedRooms(client redis.UniversalClient) roomsync.Shared {
	return roomsync.NewHash(client, o.Names.Rooms, o.RedisTimeout)
}

// LongRunning returns the RunE of a command that runs until it is stopped. SIGHUP reads its files again.
func (o *Options) LongRunning(run func(*cobra.Command, *slog.Logger) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		hup := catchHangups()
		if p, ok := cmd.ErrOrStderr().(*process); ok { // else a test looks on
			o.process = p
			p.begin(cmd.Flags())
		}
		if err := o.Load(cmd); err != nil {
			return err
		}
		log, err := o.Logger(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		tellGone(cmd.Flags(), func(warning string) { log.Warn(warning) })
		origin.LogTo(log)
		go hup.reload(cmd.Context(), log, o.loadFiles)
		go o.follow(cmd.Context())
		return run(cmd, log)
	}
}

// Logger returns the log of the process, which is also kept for GET /events.
func (o *Options) Logger(to io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil { // --log-level takes no other word
		return nil, Usagef("--log-level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	log := slog.New(slog.NewTextHandler(to, opts))
	if o.logFormat == "json" {
		log = slog.New(slog.NewJSONHandler(to, opts))
	}
	log = slog.New(newSeldom(o.Recorded(log).Handler()))
	if o.process != nil {
		o.process.mu.Lock()
		o.process.resumed = func(dropped uint64) {
			log.Warn("lines of the log were dropped: the reader of standard error did not take them", "lines", dropped)
		}
		o.process.mu.Unlock()
	}
	o.LogTo(log)
	return log, nil
}
