package origin

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestLibraryLogIsRare(t *testing.T) {
	var out bytes.Buffer
	l := &libraryLog{log: slog.New(slog.NewTextHandler(&out, nil))}
	for i := range 100 {
		l.Printf(t.Context(), "failed %d", i)
	}
	if got := out.String(); !strings.Contains(got, `msg="failed 0"`) || strings.Count(got, "\n") > 2 {
		t.Errorf("logged %q", got)
	}
}
