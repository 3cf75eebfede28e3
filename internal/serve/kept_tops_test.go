package serve

import (
	"context"
	"testing"
	"time"
)

// What comes while pages are being saved is saved too, though the process is ended meanwhile.
func TestPagesAreSavedOnceMoreAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	saved := 0
	saveEvery(ctx, time.Nanosecond, func() {
		saved++
		cancel()
	})
	if saved < 2 {
		t.Errorf("saved %d times: nothing came after the save during which it was ended", saved)
	}
}
