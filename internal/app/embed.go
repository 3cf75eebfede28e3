package app

import (
	"context"
	"log/slog"

	"github.com/spf13/pflag"

	"rankcache/hotkey"
	"rankcache/sidecar"
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
// starts nothing; neither environment nor file is read.
func NewSidecar(args []string, log *slog.Logger) (*Sidecar, error) {
	o := &serveOptions{}
	if err := parse("serve", o, args); err != nil {
		return nil, err
	}
	return newSidecar(o, log)
}

// Run serves until ctx is done and the drain is over.
func (s *Sidecar) Run(ctx context.Context) error { return s.run(ctx) }

// Addr returns where the listener of a flag ("data", "admin", "health") listens.
func (s *Sidecar) Addr(flag string) string { return s.listeners.addr(flag) }

// Boards returns how far the super-hot boards are, for [Screen.Follow].
func (s *Sidecar) Boards() Progressing { return s.runner }

// Ready reports whether the sidecar is ready, and why not.
func (s *Sidecar) Ready() (bool, string) {
	now := s.ready.Now()
	return now.State == sidecar.StateReady, now.Reason
}

// Hot returns the boards of the hot tier, as GET /hotkeys does.
func (s *Sidecar) Hot() []hotkey.Row { return s.tracker.Hot() }

// NewWriter builds the writer that "rankcache write" with these arguments is, as
// [NewSidecar] does the sidecar.
func NewWriter(args []string, log *slog.Logger) (*Writer, error) {
	o := &writeOptions{}
	if err := parse("write", o, args); err != nil {
		return nil, err
	}
	return newWriter(o, log)
}

// Run writes until ctx is done and the drain is over.
func (w *Writer) Run(ctx context.Context) error { return w.run(ctx) }
