package rooms

import (
	"errors"
	"fmt"
)

// needsKafka tells what to do about what can't be without Kafka.
const needsKafka = "needs Kafka, which has the log of all changes: name its brokers (--kafka)"

// CheckWithoutLog returns an error that names the first room, board or class that can't be without Kafka, and without
// a log of changes in Redis: a whole board in memory is filled from the log.
func (f *File) CheckWithoutLog() error {
	for _, room := range f.Rooms {
		if room.Mode == ModeSuperHot {
			return fmt.Errorf("room %q is super-hot, which %s, or make it hot", room.UID, needsKafka)
		}
	}
	for _, rule := range f.Rules {
		if rule.Mode == ModeSuperHot {
			return fmt.Errorf("board %q is super-hot, which %s, or make it hot", rule.Match, needsKafka)
		}
	}
	for _, c := range f.Classes {
		if c.Mode == ModeSuperHot {
			return c.wrong(fmt.Errorf("it is super-hot, which %s, or make it hot", needsKafka))
		}
		if err := c.needsKafka(); err != nil {
			return c.wrong(err)
		}
	}
	return nil
}

// CheckWithoutKafka returns an error that names the first class that can't be without Kafka, where the log of changes
// is in Redis: one whose commands are in Kafka before they are applied, or whose periods the controller is to end.
func (f *File) CheckWithoutKafka() error {
	for _, c := range f.Classes {
		err := c.needsKafka()
		if err == nil && c.Calendar().Periodic() {
			err = errors.New("it has periods, whose end " + needsKafka)
		}
		if err != nil {
			return c.wrong(err)
		}
	}
	return nil
}

// needsKafka returns why the class's commands have to be in the command topic before they are applied, or nil.
func (c *Class) needsKafka() error {
	switch {
	case c.Ledger:
		return errors.New("ledger: true " + needsKafka)
	case len(c.FeedNames()) > 0:
		return errors.New("feeds " + needsKafka)
	case c.Durable:
		return errors.New("it is durable, which " + needsKafka)
	}
	return nil
}
