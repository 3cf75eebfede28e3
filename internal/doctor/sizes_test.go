package doctor

import (
	"strings"
	"testing"
)

func TestJudgeSizes(t *testing.T) {
	for _, c := range []struct {
		limits   map[string]int64
		settings map[string]string
		want     Status
		text     string
	}{
		{map[string]int64{"topic a": 1048588, "broker 1": 1048588}, nil, OK, "2 topics and brokers"},
		{map[string]int64{"topic a": 65536, "broker 1": 1048588}, nil, Warn, "topic a (65536)"},
		{map[string]int64{"topic a": 65536}, map[string]string{"batch.size": "60000"}, OK, ""},
		{map[string]int64{"topic a": 65536}, map[string]string{"message.max.bytes": "60000"}, OK, ""},
		{map[string]int64{"topic a": 1048588, "broker 1": 2000}, nil, Fail, "broker 1 (2000)"},
	} {
		if v := judgeSizes(c.limits, batchOf(c.settings)); v.Status != c.want || !strings.Contains(v.Advice, c.text) {
			t.Errorf("%v: %+v", c.limits, v)
		}
	}
}
