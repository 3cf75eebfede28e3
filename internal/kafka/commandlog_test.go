package kafka

import (
	"strings"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// settingsOf returns the settings of a topic as a broker tells them.
func settingsOf(pairs ...string) TopicSettings {
	found := TopicSettings{Name: "update_rank", Config: map[string]ck.ConfigEntryResult{}}
	for i := 0; i < len(pairs); i += 2 {
		found.Config[pairs[i]] = ck.ConfigEntryResult{Name: pairs[i], Value: pairs[i+1]}
	}
	return found
}

// A topic is fit for durable classes, or the error has every setting that is wrong, and what it should be.
func TestCommandLogFits(t *testing.T) {
	const times, policy, retention = "message.timestamp.type", "cleanup.policy", "retention.ms"
	for _, c := range []struct {
		settings TopicSettings
		want     []string // in the error; none: it is fit
	}{
		{settingsOf(times, "LogAppendTime", policy, "delete", retention, "7200000"), nil},
		{settingsOf(times, "LogAppendTime", policy, "delete", retention, "-1"), nil},
		{settingsOf(times, "LogAppendTime", policy, "delete", retention, "7199999"), []string{"set on topic update_rank: retention.ms=7200000 (it is 7199999, less than two order lives of 1h0m0s)"}},
		{settingsOf(times, "LogAppendTime", policy, "compact,delete", retention, "-1"), []string{"cleanup.policy=delete (it is compact,delete)"}},
		{settingsOf(times, "CreateTime", policy, "compact", retention, "1"), []string{"message.timestamp.type=LogAppendTime (it is CreateTime), ", "cleanup.policy=delete (it is compact), ", "retention.ms="}},
		{settingsOf(), []string{"message.timestamp.type=LogAppendTime (it is not known)", "retention.ms="}},
	} {
		log := newCommandLog(c.settings)
		err := log.Fit(time.Hour)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%v: %v, want %q", c.settings.Config, err, c.want)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %q in it", c.settings.Config, err, want)
			}
		}
	}
	missing := CommandLog{Topic: "update_rank", Missing: true}
	if err := missing.Fit(time.Hour); err == nil || !strings.Contains(err.Error(), "there is no topic update_rank") {
		t.Errorf("missing: %v", err)
	}
}

// What is made with the settings is fit for any order life; without durable classes the retention is the broker's.
func TestCommandLogSettings(t *testing.T) {
	for _, orders := range []time.Duration{10 * time.Minute, time.Hour, 30 * 24 * time.Hour} {
		pairs := []string{}
		for key, value := range CommandLogSettings(orders) {
			pairs = append(pairs, key, value)
		}
		log := newCommandLog(settingsOf(pairs...))
		if err := log.Fit(orders); err != nil {
			t.Error(orders, err)
		}
	}
	if plain := CommandLogSettings(0); len(plain) != 1 || plain["message.timestamp.type"] != "LogAppendTime" {
		t.Errorf("without durable classes: %v", plain)
	}
}
