package kafka

import (
	"log/slog"
	"strings"
	"testing"
)

// TestSettings: an operator's win over ours, but for those on which guarantees depend.
func TestSettings(t *testing.T) {
	given := Settings{"bootstrap.servers": "x", "linger.ms": "50", "enable.metrics.push": "true"}
	conf := *config(LogTo(slog.New(slog.DiscardHandler)), []Settings{{"linger.ms": "2", "acks": "all"}, given})
	for key, want := range map[string]any{"linger.ms": "50", "acks": "all", "enable.metrics.push": "true", "log.connection.close": "false", "go.logs.channel.enable": true, "log_level": nil} {
		if conf[key] != want {
			t.Errorf("%s is %v, want %v", key, conf[key], want)
		}
	}
	if conf := *config(nil, []Settings{{"log_level": "7"}}); conf["log_level"] != 0 {
		t.Error("a client without log writes one")
	}
	if err := Check(given, "acks"); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"group.id", "enable.auto.commit", "enable.auto.offset.store", "go.batch.producer", "acks", "bootstrap.servers"} {
		wrong := Settings{"bootstrap.servers": "x", key: ""}
		if err := Check(wrong, "acks"); err == nil || !strings.Contains(err.Error(), "kafka setting "+key+" is ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
