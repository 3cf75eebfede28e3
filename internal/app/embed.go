package app

import (
	"log/slog"

	"github.com/spf13/pflag"

	"rankcache/rooms"
)

// settings are those of one command.
type settings interface {
	register(*pflag.FlagSet)
	readSecrets(*pflag.FlagSet) error
}

// parse reads args into the settings of a command.
func parse(command string, o settings, args []string) error {
	flags := pflag.NewFlagSet(command, pflag.ContinueOnError)
	o.register(flags)
	if err := flags.Parse(args); err != nil {
		return Usagef("%s: %w", command, err)
	}
	return o.readSecrets(flags)
}

// NewSidecar builds the sidecar that "rankcache serve" with these arguments is,
// for a program that runs it in its own process. It opens the listeners and
// starts nothing; neither environment nor file of settings is read. The rooms file is
// parsed by parseRooms, or by [rooms.Parse] if that is nil.
func NewSidecar(args []string, parseRooms func([]byte) (*rooms.File, error), log *slog.Logger) (*Sidecar, error) {
	o := &serveOptions{}
	if err := parse("serve", o, args); err != nil {
		return nil, err
	}
	o.secrets.logTo(log)
	o.parseRooms = parseRooms
	return newSidecar(o, log)
}

// NewWriter builds the writer that "rankcache write" with these arguments is, as
// [NewSidecar] does the sidecar.
func NewWriter(args []string, parseRooms func([]byte) (*rooms.File, error), log *slog.Logger) (*Writer, error) {
	o := &writeOptions{}
	if err := parse("write", o, args); err != nil {
		return nil, err
	}
	o.secrets.logTo(log)
	o.parseRooms = parseRooms
	return newWriter(o, log)
}
