package kafka

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// TestBrokerThatIsAwayIsNamedOnce: that all brokers are down comes again each second, and names none.
func TestBrokerThatIsAwayIsNamedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan Event)
		go func() {
			defer close(events)
			events <- ck.NewError(ErrTransport, "10.0.0.1:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused", false)
			for range 3 {
				time.Sleep(2 * time.Second)
				events <- ck.NewError(ck.ErrAllBrokersDown, "1/1 brokers are down", false)
			}
		}()
		var lines []string
		Log(func(_ slog.Level, line string, args ...any) {
			lines = append(lines, fmt.Sprint(append([]any{line}, args...)...))
		}).drainEvents(events, func(Event) {})
		if want := "[kafka producererr10.0.0.1:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused]"; fmt.Sprint(lines) != want {
			t.Errorf("%v, want %v", lines, want)
		}
	})
}
