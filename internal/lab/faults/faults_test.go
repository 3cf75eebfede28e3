package faults

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"rankcache/internal/testkit"
)

// TestFaults runs the rows of the suite, the quick ones only unless it is run in
// full size, and writes the table where it is configured.
func TestFaults(t *testing.T) {
	h := newFixture(t)
	var results []Result
	for _, f := range allFaults() {
		if !f.quick && !testkit.Full() {
			continue
		}
		t.Run(notPlain.ReplaceAllString(f.name, "_"), func(t *testing.T) { results = append(results, f.run(t, h)) })
	}
	if file := os.Getenv(envTable); file != "" { // also when a row failed: the table then shows it
		if err := WriteTable(file, results); err != nil {
			t.Error(err)
		}
	}
}

// notPlain is what a pattern of -run may take for a sign of its own: a row that failed is run
// again by its name.
var notPlain = regexp.MustCompile(`[^A-Za-z0-9]+`)

func allFaults() []fault {
	return slices.Concat(redisFaults(), clusterFaults(), lostFaults(), handFaults(), kafkaFaults(), brokerFaults(), orderFaults(), processFaults(), edgeFaults(), memoryFaults())
}
