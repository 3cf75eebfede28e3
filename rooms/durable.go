package rooms

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// minDurableOrders is a durable class's least order life: by order ids it is known what a failover has lost.
const minDurableOrders = 10 * time.Minute

// Ordered reports whether two commands, the other way round, can leave other scores, order or refusals.
func (c *Class) Ordered() bool { return c.OrderedAsBoard() || !c.Commutes() }

// Commutes reports whether the class has one operation, which leaves the same scores in any sequence, and no data.
func (c *Class) Commutes() bool { return !c.Data && c.opsCommute() }

func (c *Class) opsCommute() bool { return len(c.Ops) == 1 && c.Ops[0].Commutes(c.Ops[0]) }

// OrderedAsBoard reports whether its commands need their board as key in the command topic, not their member.
func (c *Class) OrderedAsBoard() bool {
	return c.Ties != TiesMember || c.Guard.Refuse && (c.Guard.Changes > 0 || c.Guard.Members > 0 || c.Guard.Gain > 0)
}

func (c *Class) readDurable(n *yaml.Node) error {
	err := boolean(&c.Durable)(n)
	c.plain = !c.Durable
	return err
}

// imply makes a class durable that must be so for another of its settings.
func (c *Class) imply() error {
	why := ""
	switch {
	case c.Ledger:
		why = "ledger: true needs"
	case len(c.Feeds) > 0:
		why = "feeds need"
	case c.Rolls():
		why = "rolling needs"
	default:
		return nil
	}
	return c.needDurable(why + " each command in the log before it is applied")
}

func (c *Class) needDurable(why string) error {
	if c.plain {
		return fmt.Errorf("durable: false: %s: leave durable out", why)
	}
	c.Durable = true
	return nil
}

// makeFedDurable makes fed classes durable: a change is lost and found with what it fed. It puts copies in place.
func (all Classes) makeFedDurable() error {
	for _, c := range all {
		for _, name := range c.FeedNames() {
			i := slices.IndexFunc(all, func(fed *Class) bool { return fed.Name() == name })
			fed := *all[i]
			if err := fed.needDurable("class " + c.Name() + " feeds this one, so it must be durable, too"); err != nil {
				return fed.wrong(err)
			}
			all[i] = &fed
		}
	}
	return nil
}

// DurableOrders returns the longest order life of the durable classes, 0 without one.
func (all Classes) DurableOrders() (longest time.Duration) {
	for _, c := range all {
		if c.Durable {
			longest = max(longest, c.Orders)
		}
	}
	return longest
}
