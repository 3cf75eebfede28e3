package rooms

import "fmt"

// needsLog tells what to do about what can't be without the log of all changes.
const needsLog = "needs Kafka, which has the log of all changes: name its brokers (--kafka)"

// CheckWithoutLog returns an error that names the first room, board or class that can't be without Kafka: a whole board
// in memory is filled from the log of its changes, and a durable class has its commands there.
func (f *File) CheckWithoutLog() error {
	for _, room := range f.Rooms {
		if room.Mode == ModeSuperHot {
			return fmt.Errorf("room %q is super-hot, which %s, or make it hot", room.UID, needsLog)
		}
	}
	for _, rule := range f.Rules {
		if rule.Mode == ModeSuperHot {
			return fmt.Errorf("board %q is super-hot, which %s, or make it hot", rule.Match, needsLog)
		}
	}
	for _, c := range f.Classes {
		switch {
		case c.Mode == ModeSuperHot:
			return c.wrong(fmt.Errorf("it is super-hot, which %s, or make it hot", needsLog))
		case c.Ledger:
			return c.wrong(fmt.Errorf("ledger: true %s", needsLog))
		case len(c.FeedNames()) > 0:
			return c.wrong(fmt.Errorf("feeds %s", needsLog))
		case c.Durable:
			return c.wrong(fmt.Errorf("it is durable, which %s", needsLog))
		}
	}
	return nil
}
