package encode

import (
	"testing"
	"time"

	"rankcache/internal/testkit/fixture"
)

func TestAppendTime(t *testing.T) {
	for _, at := range []time.Time{
		fixture.Published, time.Unix(0, 0), time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", 3600)), {},
		time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
	} {
		want := at.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)
		if got := string(appendTime(nil, at)); got != want || len(got) != TimeLen {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
