package app

import (
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/internal/roomsync"
	"rankcache/rooms"
	"rankcache/wire"
)

// commonOptions are the settings that every long-running command shares.
type commonOptions struct {
	redisOptions
	kafka      string
	kafkaKeys  map[string]string // kafka.* without the prefix
	kafkaPaths map[string]string // of those that came from files
	rooms      string
	parseRooms func([]byte) (*rooms.File, error) // nil: [rooms.Parse]
	names      wire.Names
	logLevel   string
	logFormat  string
	events     eventRing
	shown      map[string]any // what rankcache config prints
	secrets    secrets

	readTimeout time.Duration // of a request over HTTP; 0: the default
}

func (o *commonOptions) register(flags *pflag.FlagSet) {
	o.registerRedis(flags)
	flags.StringVar(&o.kafka, "kafka", "127.0.0.1:9092", "Kafka `brokers`, comma-separated; kafka.<key> passes any librdkafka setting, such as --kafka.security.protocol=sasl_ssl")
	flags.StringVar(&o.rooms, "rooms", "", "rooms `file` (YAML); read again while running")
	group(flags, "Redis, Kafka, rooms")
	o.registerNames(flags)
	group(flags, "Names of keys and topics")
	choiceVar(flags, &o.logLevel, "log-level", "", "info", "least that is logged: debug, info, warn or error", "debug", "info", "warn", "error")
	choiceVar(flags, &o.logFormat, "log-format", "", "text", "how the log is written: text or json", "text", "json")
	group(flags, "Log")
}

func (o *commonOptions) registerNames(flags *pflag.FlagSet) {
	o.names = wire.DefaultNames()
	flags.StringVar(&o.names.Board, "key-board", o.names.Board, "Redis key `pattern` of a board's sorted set")
	flags.StringVar(&o.names.Meta, "key-meta", o.names.Meta, "Redis key `pattern` of a board's state: run, seq, sum, members and more")
	flags.StringVar(&o.names.Orders, "key-orders", o.names.Orders, "Redis key `pattern` of the hashes of a board's applied order ids")
	flags.StringVar(&o.names.Room, "key-room", o.names.Room, "Redis key `pattern` of the set of boards running in a room")
	flags.StringVar(&o.names.Rooms, "key-rooms", o.names.Rooms, "Redis `key` of the hash of rooms that are set at run time")
	flags.StringVar(&o.names.Ends, "key-ends", o.names.Ends, "Redis `key` of the index of boards that are to be closed")
	flags.StringVar(&o.names.Controller, "key-controller", o.names.Controller, "Redis `key` of the lease of the controller that works")
	flags.StringVar(&o.names.Hot, "key-hot", o.names.Hot, "Redis key `pattern` of the shared hot-key verdict")
	flags.StringVar(&o.names.Commands, "topic-commands", o.names.Commands, "Kafka topic of commands")
	flags.StringVar(&o.names.Refused, "topic-refused", o.names.Refused, "Kafka topic of the commands that are refused")
	flags.StringVar(&o.names.ClassPrefix, "topic-class-updates", o.names.ClassPrefix, "beginning of the Kafka topic of the updates of a class and day")
	flags.StringVar(&o.names.Finals, "topic-finals", o.names.Finals, "Kafka topic of the results of closed boards")
	flags.StringVar(&o.names.Ledger, "topic-ledger", o.names.Ledger, "Kafka topic of all changes of the boards that are kept in the ledger")
	flags.StringVar(&o.names.UpdatePrefix, "topic-updates", o.names.UpdatePrefix, "beginning of the Kafka topic of each board's updates")
}

// load reads the configuration into the flags of cmd and checks what is common.
func (o *commonOptions) load(cmd *cobra.Command) (err error) {
	if o.kafkaKeys, err = loadConfig(cmd); err != nil {
		return err
	}
	if err := o.readSecrets(cmd.Flags()); err != nil {
		return err
	}
	if err := o.names.Check(); err != nil {
		return Usagef("%w", err)
	}
	return nil
}

// readSecrets keeps what may be shown of the settings, and reads the files of all secret
// ones.
func (o *commonOptions) readSecrets(flags *pflag.FlagSet) (err error) {
	o.shown = inForce(flags, shownNames(flags), o.kafkaKeys) // before files of Kafka's secrets are read
	if o.secrets, err = secretsOf(flags); err != nil {
		return err
	}
	o.kafkaPaths, err = readKafkaFiles(o.kafkaKeys)
	return err
}

// sharedRooms is the hash of rooms that are set at run time.
func (o *commonOptions) sharedRooms(client redis.UniversalClient) roomsync.Shared {
	return roomsync.NewHash(client, o.names.Rooms, o.redisTimeout)
}

// logger returns the log of the process.
func (o *commonOptions) logger(to io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil { // --log-level takes no other word
		return nil, Usagef("--log-level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	log := slog.New(slog.NewTextHandler(to, opts))
	if o.logFormat == "json" {
		log = slog.New(slog.NewJSONHandler(to, opts))
	}
	o.secrets.logTo(log)
	return log, nil
}
