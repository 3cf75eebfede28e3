package doctor

import (
	"strings"
	"time"

	"rankcache"
)

// judgeTopics says which super-hot boards have a log.
func judgeTopics(s survey) Verdict {
	switch {
	case len(s.boards) == 0:
		return okf("no board is super-hot, so no topic is needed; %d topics begin as update topics do", s.matching)
	case len(s.missing) > 0:
		return warnf("%d of %d super-hot boards have no update topic: %s: each is answered by Redis until the writer makes its topic with the board's next update; check --topic-updates and that the writer's rooms name the board",
			len(s.missing), len(s.boards), list(s.missing))
	}
	return okf("each of %d super-hot boards has its topic; %d topics begin as update topics do", len(s.boards), s.matching)
}

// judgeRetention says whether the logs can give whole boards. A board without
// seqs has no other way to open.
func judgeRetention(s survey, total string) Verdict {
	var cut, short []rankcache.BoardID
	for _, t := range s.topics {
		switch {
		case strings.Contains(t.policy, "compact") && !strings.Contains(t.policy, "delete"):
		case t.low > 0:
			cut = append(cut, t.board)
		case t.retention >= 0 || t.retentionBytes >= 0:
			short = append(short, t.board)
		}
	}
	judge, what := warnf, "such boards are loaded from Redis when a sidecar starts"
	if total != "seq" {
		judge, what = failf, "with --total "+total+" such boards never open"
	}
	const remedy = "set retention.ms=-1 and retention.bytes=-1, or cleanup.policy=compact"
	switch {
	case len(cut) > 0:
		return judge("the logs of %d boards have lost their beginning: %s: %s; %s", len(cut), list(cut), what, remedy)
	case len(short) > 0:
		return warnf("the logs of %d boards are cut by age or size one day: %s: then %s; %s", len(short), list(short), what, remedy)
	case len(s.topics) == 0:
		return okf("no topic to look at")
	}
	return okf("%d logs begin at their first record and are kept for ever", len(s.topics))
}

// judgeReplicas says whether a broker that goes away stops updates.
func judgeReplicas(s survey) Verdict {
	var stuck, single, tight []rankcache.BoardID
	for _, t := range s.topics {
		switch {
		case t.minISR > t.replicas:
			stuck = append(stuck, t.board)
		case t.replicas == 1 && s.brokers > 1:
			single = append(single, t.board)
		case t.minISR == t.replicas && t.replicas > 1:
			tight = append(tight, t.board)
		}
	}
	switch {
	case len(stuck) > 0:
		return failf("%d topics want more replicas in sync than they have (min.insync.replicas), so nothing can be produced: %s", len(stuck), list(stuck))
	case len(single) > 0:
		return warnf("%d topics have one replica, so a broker that goes away takes them along: %s: use --topic-replication 3", len(single), list(single))
	case len(tight) > 0:
		return warnf("%d topics want all replicas in sync, so one broker that goes away stops the writer: %s: set min.insync.replicas one lower", len(tight), list(tight))
	case s.brokers == 1:
		return okf("one broker: fine for trials")
	}
	return okf("%d topics stand the loss of a broker", len(s.topics))
}

// judgeNewest looks for records from the future: a producer's clock is ahead.
func judgeNewest(s survey) Verdict {
	var ahead time.Duration
	var board rankcache.BoardID
	for _, t := range s.topics {
		if d := t.newest.Sub(s.now); d > ahead {
			ahead, board = d, t.board
		}
	}
	if ahead > skewWarn {
		return warnf("the newest record of board %s is %v ahead of this machine's clock: run NTP on writers, brokers and here", board, ahead.Round(time.Millisecond))
	}
	return okf("no record is from the future")
}
