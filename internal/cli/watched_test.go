package cli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestKafkaFilesRotate: what librdkafka reads once and has changed since is told, in the log, the status and a metric.
func TestKafkaFilesRotate(t *testing.T) {
	var said bytes.Buffer
	ca := filepath.Join(t.TempDir(), "ca.p12")
	must(t, os.WriteFile(ca, []byte("first"), 0o600))
	o := &Options{}
	o.watchKafka(map[string]string{"ssl.ca.location": "probe", "ssl.keystore.location": ca, "sasl.username": "u"})
	o.LogTo(slog.New(slog.NewTextHandler(&said, nil)))
	metric := func(value string) error {
		return testutil.CollectAndCompare(&o.watched, strings.NewReader("# HELP rankcache_file_not_in_force 1 while what a watched file has is not what is used: it can't be read, or only a restart reads it.\n"+
			"# TYPE rankcache_file_not_in_force gauge\nrankcache_file_not_in_force{setting=\"kafka.ssl.keystore.location\"} "+value+"\n"))
	}
	must(t, metric("0"))
	must(t, os.WriteFile(ca, []byte("the second"), 0o600))
	must(t, metric("1"))
	if all := o.FileStatuses(); len(all) != 1 || !strings.Contains(all[0].Error, "roll the pods") || !strings.Contains(said.String(), "roll the pods") {
		t.Errorf("%+v, log %q", all, said.String())
	}
}
