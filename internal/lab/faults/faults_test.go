package faults

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"rankcache/internal/testkit"
)

// atOnce is how many rows run beside each other, each with servers of its own: they wait most of the time.
var atOnce = testkit.Sized(2, 4)

// TestFaults runs the rows of the suite, the quick ones only unless it is run in
// full size, and writes the table where it is configured.
func TestFaults(t *testing.T) {
	build(t)
	rows := allFaults()
	if !testkit.Full() {
		rows = slices.DeleteFunc(rows, func(f fault) bool { return !f.quick })
	}
	fixtures := newFixtures(t, atOnce)
	results := make([]Result, len(rows))
	t.Cleanup(func() {
		if file := os.Getenv(envTable); file != "" { // also when a row failed: the table then shows it
			if err := WriteTable(file, results); err != nil {
				t.Error(err)
			}
		}
	})
	for i, f := range rows {
		t.Run(notPlain.ReplaceAllString(f.name, "_"), func(t *testing.T) {
			t.Parallel()
			results[i] = Result{Fault: f.name} // should it fail
			results[i] = f.run(t, fixtures.take(t))
		})
	}
}

// notPlain is what a pattern of -run may take for a sign of its own: a row that failed is run
// again by its name.
var notPlain = regexp.MustCompile(`[^A-Za-z0-9]+`)

func allFaults() []fault {
	return slices.Concat(redisFaults(), clusterFaults(), keeperFaults(), lostFaults(), handFaults(), kafkaFaults(), brokerFaults(), orderFaults(), processFaults(), edgeFaults(), memoryFaults(), lingerFaults())
}
