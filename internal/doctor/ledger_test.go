package doctor

import (
	"testing"
)

func TestJudgeServer(t *testing.T) {
	for version, want := range map[string]string{
		"PostgreSQL 16.2 (Debian 16.2-1) on x86_64": "ok: PostgreSQL 16.2",
		"PostgreSQL 10.23 on x86_64-pc-linux-gnu":   "fail: want 11.0 or newer",
		"EnterpriseDB": "warn: unknown (EnterpriseDB)",
	} {
		check(t, version, judgeServer(version, true), want)
	}
	for version, want := range map[string]string{
		"11.8.3-MariaDB-0+deb13u1 Debian 13":   "ok: MariaDB 11.8",
		"10.1.48-MariaDB mariadb.org":          "fail: MariaDB 10.1 is not supported",
		"8.0.36 MySQL Community Server - GPL":  "ok: MySQL 8.0",
		"5.7.44-log MySQL Community Server":    "fail: MySQL 5.7 is not supported: want 8.0",
		"10.2.0 MariaDB in the comment is one": "ok: MariaDB 10.2",
	} {
		check(t, version, judgeServer(version, false), want)
	}
}

func TestJudgeSchema(t *testing.T) {
	check(t, "same", judgeSchema(3, 3, false, true), "ok: of version 3")
	check(t, "newer", judgeSchema(4, 3, true, true), "fail: update it")
	check(t, "older", judgeSchema(2, 3, true, true), "ok: rankcache ledger does so")
	check(t, "older, no right", judgeSchema(0, 3, false, true), "fail: rankcache ledger migrate")
	check(t, "older, a role?", judgeSchema(0, 3, false, false), "warn: one by a role is not")
}

func TestJudgeLedgerTopic(t *testing.T) {
	const day = 24 * 3600 * 1000
	check(t, "30 days", judgeLedgerTopic(topic{policy: "delete", retention: 30 * day, retentionBytes: -1}, 12), "ok: 12 partitions, changes are kept for 720h")
	check(t, "for ever", judgeLedgerTopic(topic{policy: "delete", retention: -1, retentionBytes: -1}, 12), "ok: for ever")
	check(t, "a day", judgeLedgerTopic(topic{policy: "delete", retention: day, retentionBytes: -1}, 12), "warn: set retention.ms=604800000")
	check(t, "by size", judgeLedgerTopic(topic{policy: "delete", retention: -1, retentionBytes: 1 << 30}, 12), "warn: retention.bytes=-1")
	check(t, "compacted", judgeLedgerTopic(topic{policy: "compact,delete", retention: -1, retentionBytes: -1}, 12), "fail: set delete")
}

func TestJudgeLag(t *testing.T) {
	first, ends := map[int32]int64{0: 0, 1: 10}, map[int32]int64{0: 5, 1: 20}
	for want, next := range map[string]map[int32]int64{
		"ok: 0 changes":                 {0: 5, 1: 20},
		"ok: 7 changes are not written": {0: 3, 1: 15},
		"ok: 15 changes are not written yet, 2 of 2 partitions were never": nil,
		"fail: 6 changes are gone": {0: 5, 1: 4},
		"fail: made anew":          {0: 6, 1: 20},
	} {
		check(t, want, judgeLag(first, next, ends), want)
	}
	check(t, "far behind", judgeLag(map[int32]int64{0: 0}, map[int32]int64{0: 1}, map[int32]int64{0: farBehind + 2}), "warn: check that rankcache ledger is running")
}
