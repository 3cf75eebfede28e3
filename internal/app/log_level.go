package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"rankcache/internal/httpserve"
	"rankcache/sidecar/adminapi"
)

// maxLogLevelFor is the longest time that another level than --log-level is in force.
const maxLogLevelFor = 24 * time.Hour

// logLevels are the levels by their names in settings.
var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// logLevel is the level of the log, which may be another one than configured for a while.
type logLevel struct {
	inForce slog.LevelVar // the log reads it

	mu         sync.Mutex // a leaf
	configured slog.Level
	until      time.Time // zero: the configured one is in force
	back       *time.Timer
}

// configure sets the level that is in force from now on.
func (l *logLevel) configure(level slog.Level) {
	l.configured = level
	l.inForce.Set(level)
}

// set puts a level into force for a time; then the configured one comes back.
func (l *logLevel) set(level slog.Level, length time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.back != nil {
		l.back.Stop()
	}
	until := time.Now().Add(length)
	l.until = until
	l.inForce.Set(level)
	l.back = time.AfterFunc(length, func() { l.end(until) })
}

// end puts the configured level back, unless another one was set meanwhile.
func (l *logLevel) end(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.Equal(until) {
		l.until = time.Time{}
		l.inForce.Set(l.configured)
	}
}

// logLevelBody is log_level of /status, and the answer of POST /log-level.
type logLevelBody struct {
	Level string     `json:"level"`
	Until *time.Time `json:"until,omitempty"` // missing: it is the configured one
}

func (l *logLevel) status() logLevelBody {
	l.mu.Lock()
	defer l.mu.Unlock()
	body := logLevelBody{}
	for name, level := range logLevels {
		if level == l.inForce.Level() {
			body.Level = name
		}
	}
	if until := l.until.UTC().Truncate(time.Second); !l.until.IsZero() {
		body.Until = &until
	}
	return body
}

// logLevelRequest is the body of POST /log-level.
type logLevelRequest struct {
	Level string `json:"level"`
	For   int    `json:"for_s"`
}

func (r *logLevelRequest) check() error {
	if _, known := logLevels[r.Level]; !known {
		return errors.New("level: want debug, info, warn or error")
	}
	if r.For < 1 || r.For > int(maxLogLevelFor/time.Second) {
		return fmt.Errorf("for_s: want 1 to %d seconds", maxLogLevelFor/time.Second)
	}
	return nil
}

// handler answers POST /log-level. The caller authorizes it.
func (l *logLevel) handler(log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request logLevelRequest
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10))
		dec.DisallowUnknownFields()
		err := dec.Decode(&request)
		if err == nil {
			err = request.check()
		}
		if err != nil {
			adminapi.WriteProblem(w, "bad_argument", "body", err.Error())
			return
		}
		length := time.Duration(request.For) * time.Second
		log.Info("log level is changed for a while", "level_now", request.Level, "for", length)
		l.set(logLevels[request.Level], length)
		httpserve.WriteJSON(w, http.StatusOK, l.status())
	}
}

func newLogLevelCommand() *cobra.Command {
	c := &adminClient{}
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "log-level LEVEL",
		Short: "Change what a running process logs, for a while",
		Long: `Have one process log from LEVEL on: debug, info, warn or error. When the time is
over, its --log-level is in force again. --for is taken from the command line alone.
For another process than a sidecar give its health port (of rankcache ledger, --http) as
--admin, and its --admin-token.`,
		Example: `  rankcache log-level debug --for 10m
  rankcache log-level debug --for 10m --admin 127.0.0.1:8974`,
		Args:      OneArg,
		ValidArgs: []string{"debug", "info", "warn", "error"},
	}
	c.register(cmd, true)
	cmd.Flags().DurationVar(&length, "for", 10*time.Minute, "how long, up to 24h")
	markTyped(cmd.Flags(), "for")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := logLevelRequest{args[0], int(length / time.Second)}
		if err := request.check(); err != nil {
			return Usagef("%w", err)
		}
		text, err := json.Marshal(request)
		if err != nil {
			return err
		}
		body, err := c.ask(cmd.Context(), http.MethodPost, "/log-level", text)
		if err != nil {
			return err
		}
		return c.print(cmd.OutOrStdout(), body, printLogLevel)
	}
	return cmd
}

func printLogLevel(to io.Writer, body []byte) error {
	var now logLevelBody
	if err := json.Unmarshal(body, &now); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "logs from %s on until %s\n", now.Level, now.Until.Format(time.RFC3339))
	return err
}
