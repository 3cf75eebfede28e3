package doctor

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"rankcache"
	"rankcache/internal/kafka"
)

const (
	skewWarn = time.Second // the difference of clocks from which on ages and times in answers mislead
	maxNames = 5           // the number of names that a line of advice lists
)

// judgeMode compares --redis-mode with the mode that the server reports.
func judgeMode(mode, server, cluster string) Verdict {
	isCluster := server == "cluster" || cluster == "1"
	switch {
	case server == "" && cluster == "":
		return warnf("the user may not use INFO: check by hand that --redis-mode %s is right", mode)
	case server == "sentinel" && mode != "sentinel":
		return failf("this is a sentinel, which has no boards: use --redis-mode sentinel and ?master_name=")
	case isCluster && mode != "cluster":
		return failf("this Redis is a node of a cluster and has only a part of the boards: use --redis-mode cluster")
	case !isCluster && mode == "cluster":
		return failf("this Redis is not a cluster: use --redis-mode single")
	}
	return okf("--redis-mode %s matches the server", mode)
}

func judgeRole(values []any, err error) Verdict {
	switch {
	case err != nil:
		return warnf("it is unknown whether this Redis is a master: grant ROLE if an ACL forbids it, else check by hand, because a replica's lag looks like lost writes: %s", explain(err))
	case len(values) == 0 || values[0] != "master":
		return failf("this Redis is no master but %v: a replica's lag looks like lost writes: give the master's address, or use --redis-mode sentinel", values)
	}
	return okf("Redis is a master with %d replicas", replicas(values))
}

// replicas counts the replicas in a master's answer to ROLE.
func replicas(values []any) int {
	if len(values) < 3 {
		return 0
	}
	list, _ := values[2].([]any)
	return len(list)
}

// judgeEviction judges what Redis evicts when its memory is full.
func judgeEviction(policy, maxmemory, human string) Verdict {
	switch {
	case policy == "":
		return warnf("the user may not use INFO memory: check that maxmemory-policy is noeviction")
	case policy == "noeviction":
		return okf("maxmemory-policy is noeviction")
	case maxmemory == "0":
		return okf("maxmemory-policy is %s, but there is no maxmemory, so nothing is evicted", policy)
	case strings.HasPrefix(policy, "volatile-"):
		return warnf("maxmemory-policy %s (maxmemory %s) evicts keys that expire, as boards do: set noeviction, or keep memory well below the limit", policy, human)
	}
	return failf("maxmemory-policy %s (maxmemory %s) may evict boards and their seqs, which then start again at 0: set noeviction", policy, human)
}

// judgeSkew judges a clock that is ahead of this machine's by skew ± fuzz.
func judgeSkew(server string, skew, fuzz time.Duration) Verdict {
	if skew.Abs() > skewWarn+fuzz {
		where := "ahead of"
		if skew < 0 {
			where = "behind"
		}
		return warnf("the clock of %s is %v %s this machine's: run NTP on both, otherwise ages in answers and logs are wrong", server, skew.Abs().Round(time.Millisecond), where)
	}
	return okf("the clock of %s agrees with this machine's within %v", server, max(skew.Abs(), fuzz).Round(time.Millisecond))
}

// Memory compares the memory that the super-hot boards need with their budget.
type Memory struct {
	Boards   int
	Members  int64  // of all super-hot boards
	Estimate int64  // bytes that they will take
	Budget   int64  // bytes that boards may take; 0: unknown
	Source   string // of the budget
}

// Judge returns the verdict on whether the boards fit.
func (m Memory) Judge() Verdict {
	const mib = 1 << 20
	need := strconv.FormatFloat(float64(m.Estimate)/mib, 'f', 1, 64)
	switch {
	case m.Budget == 0:
		return warnf("%d super-hot boards with %d members take about %s MiB; the memory of this machine is unknown", m.Boards, m.Members, need)
	case m.Estimate > m.Budget:
		return failf("%d super-hot boards with %d members take about %s MiB, and %d MiB are for them (%s): raise the memory limit or make fewer boards super-hot", m.Boards, m.Members, need, m.Budget/mib, m.Source)
	case m.Estimate > m.Budget*8/10:
		return warnf("%d super-hot boards take about %s MiB of the %d MiB that are for them (%s): little room to grow", m.Boards, need, m.Budget/mib, m.Source)
	}
	return okf("%d super-hot boards with %d members take about %s MiB of the %d MiB that are for them (%s)", m.Boards, m.Members, need, m.Budget/mib, m.Source)
}

// list joins the first few names.
func list[T ~string](names []T) string {
	var text []string
	for i, n := range names {
		if i == maxNames {
			text = append(text, "and "+strconv.Itoa(len(names)-maxNames)+" more")
			break
		}
		text = append(text, string(n))
	}
	return strings.Join(text, ", ")
}

// judgeTopics judges which super-hot boards have a topic that they can be read from.
func judgeTopics(s survey, total string) Verdict {
	switch {
	case len(s.split) > 0 && total == "seq":
		return failf("%d topics have several partitions, and a board with seqs is read from one: %s: Redis answers such boards; delete the topics, the writer makes them again with one, or make them so if another program writes them", len(s.split), list(s.split))
	case len(s.boards) == 0:
		return okf("no board is super-hot, so no topic is needed; %d topics have the prefix of update topics", s.matching)
	case len(s.missing) > 0:
		return warnf("%d of %d super-hot boards have no update topic: %s: Redis answers each of them until the writer creates the topic with the board's next update; check --topic-updates and that the writer's rooms name the board",
			len(s.missing), len(s.boards), list(s.missing))
	}
	return okf("each of %d super-hot boards has its topic; %d topics have the prefix of update topics", len(s.boards), s.matching)
}

// judgeRetention judges whether the logs are complete. A board without seqs can open from a complete log only.
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
		return warnf("the logs of %d boards will be truncated by age or size: %s: then %s; %s", len(short), list(short), what, remedy)
	case len(s.topics) == 0:
		return okf("no topic to check")
	}
	return okf("%d logs begin at their first record and have no retention limit", len(s.topics))
}

// judgeCommandTimes judges who sets the times of the records of the command topic.
func judgeCommandTimes(name string, found kafka.TopicSettings) Verdict {
	switch kind := found.Config["message.timestamp.type"].Value; {
	case found.Error.Code() == kafka.ErrUnknownTopicOrPart:
		return warnf("there is no topic %s: make it with message.timestamp.type=LogAppendTime, or have the writer do so by --command-partitions", name)
	case found.Error.Code() != kafka.ErrNoError:
		return warnf("the settings of topic %s are unknown: check that it has message.timestamp.type=LogAppendTime: %s", name, explain(found.Error))
	case kind != "LogAppendTime":
		return warnf("topic %s has message.timestamp.type=%s: commands of classes count as arrived when they are polled, so that those of ended periods are refused after an outage; set LogAppendTime", name, kind)
	}
	return okf("records of %s have the broker's time", name)
}

// judgeDurable judges whether the command topic is fit for durable classes of an order life, as writers do.
func judgeDurable(l kafka.CommandLog, orders time.Duration, replicas int) Verdict {
	err := l.Fit(orders)
	switch {
	case err != nil:
		return failf("writers refuse posts of durable classes: %s", err)
	case l.RetentionBytes >= 0:
		return warnf("topic %s is cut at %d bytes a partition: what Redis has lost can't be applied again if that is less than two order lives of %v; set retention.bytes=-1", l.Topic, l.RetentionBytes, orders)
	case replicas > 1 && l.MinISR < 2:
		return okf("topic %s keeps what durable classes need; with min.insync.replicas=%d of %d a command can be lost with one broker: better 2", l.Topic, l.MinISR, replicas)
	}
	return okf("topic %s keeps what durable classes need", l.Topic)
}

// judgeDeletion judges whether the user may delete a topic.
func judgeDeletion(name string, found kafka.TopicDescription) Verdict {
	switch {
	case found.Error.Code() != kafka.ErrNoError:
		return warnf("the rights on topic %s are unknown: %s", name, explain(found.Error))
	case !slices.Contains(found.AuthorizedOperations, kafka.MayDelete):
		return failf("the user may not delete topic %s: the controller can't delete topics of boards that are gone; grant Delete on topics with this prefix", name)
	}
	return okf("the user may delete topic %s", name)
}

// judgeReplicas judges whether the loss of a broker stops updates.
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
		return failf("%d topics require more replicas in sync than they have (min.insync.replicas), so nothing can be produced: %s", len(stuck), list(stuck))
	case len(single) > 0:
		return warnf("%d topics have one replica and are lost with its broker: %s: use --topic-replication 3", len(single), list(single))
	case len(tight) > 0:
		return warnf("%d topics require all replicas in sync, so the loss of one broker stops the writer: %s: set min.insync.replicas one lower", len(tight), list(tight))
	case s.brokers == 1:
		return okf("one broker, which is fine for trials only")
	}
	return okf("%d topics survive the loss of a broker", len(s.topics))
}

// judgeNewest checks for records from the future: a producer's clock is ahead.
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
