package replay

import (
	"testing"
	"time"

	"rankcache/wire"
)

func TestConfig(t *testing.T) {
	good := Config{Brokers: "a:1", Names: wire.DefaultNames()}
	if c, err := good.withDefaults(); err != nil || c.TotalSource != TotalSeq || c.Deadline != DefaultDeadline {
		t.Errorf("%+v, %v", c, err)
	}
	for name, change := range map[string]func(*Config){
		"no names":      func(c *Config) { c.Names = wire.Names{} },
		"unknown total": func(c *Config) { c.TotalSource = "x" },
		"negative":      func(c *Config) { c.PollEvery = -1 },
	} {
		c := good
		change(&c)
		if _, err := c.withDefaults(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMeter(t *testing.T) {
	var m meter
	now := time.Now()
	for i := range 50 {
		m.observe(now.Add(time.Duration(i)*100*time.Millisecond), int64(i*50))
	}
	if m.rate < 499 || m.rate > 501 {
		t.Errorf("rate %v, want 500", m.rate)
	}
	m.observe(now.Add(time.Minute), 0)
	if m.rate != 0 {
		t.Errorf("rate %v after a count that fell, want 0", m.rate)
	}
}
