package writer

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Redis: redis.NewClient(&redis.Options{}), Tiers: tiers{}, Names: wire.DefaultNames(),
		Kafka: map[string]string{"bootstrap.servers": "x"}}
	_, err := New(good)
	must(t, err)
	for name, breakIt := range map[string]func(*Options){
		"redis":  func(o *Options) { o.Redis = nil },
		"tiers":  func(o *Options) { o.Tiers = nil },
		"names":  func(o *Options) { o.Names.Meta = "" },
		"life":   func(o *Options) { o.BoardLife = -1 },
		"orders": func(o *Options) { o.OrderLife = time.Second },
		"months": func(o *Options) { o.OrderLife = 1 << 62 },
		"hashes": func(o *Options) { o.OrderBuckets = 1000 },
		"kafka":  func(o *Options) { o.Kafka = nil },
		"commit": func(o *Options) { o.Kafka["enable.auto.commit"] = "true" },
		"group":  func(o *Options) { o.Kafka["group.id"] = "mine" },
		"member": func(o *Options) { o.Kafka["group.instance.id"] = "mine" },
		"repeat": func(o *Options) { o.Kafka["enable.idempotence"] = "false" },
		"go":     func(o *Options) { o.Kafka["go.batch.producer"] = "true" },
	} {
		opts := good
		opts.Kafka = maps.Clone(good.Kafka)
		breakIt(&opts)
		if _, err := New(opts); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestUnknownKafkaSetting(t *testing.T) {
	h := newFixture(t, "unused:1", func(o *Options) { o.Kafka["no.such.setting"] = "1" })
	if err := h.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no.such.setting") {
		t.Error("run:", err)
	}
}
