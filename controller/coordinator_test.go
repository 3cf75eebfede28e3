package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"rankcache/internal/testkit"
)

// TestCoordinatorMoves: the broker that is asked for the writers' offsets does not coordinate
// their group any more, as after each restart of a broker.
func TestCoordinatorMoves(t *testing.T) {
	broker := testkit.Kfake(t)
	f := newFixture(t, broker.Addr(), brokersTime, nil)
	f.commit(t, 7, 7)
	testkit.LoseGroups(broker, 3)
	testkit.Eventually(t, time.Minute, func() error {
		at, err := f.kafka.committed(t.Context(), &marks{next: []kafka.Offset{7, 7}})
		if err == nil && (at[0] != 7 || at[1] != 7) {
			err = fmt.Errorf("committed %v", at)
		}
		return err
	})
}
