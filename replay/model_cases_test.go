package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/wire"
)

// modelCase runs a history that was written by hand.
func modelCase(t *testing.T, before, after func(w *modelEnv)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newModelEnv(t, 1)
		before(w)
		w.start()
		defer w.end()
		after(w)
		w.calm()
		w.heal()
	})
}

// A board that was opened while a writer added up its members has no checksum to be
// proved by. It is proved once Redis has one.
func TestModelBoardIsProvedAfterAdoption(t *testing.T) {
	modelCase(t, func(w *modelEnv) {
		w.changes(30)
		w.redis.slowAdopt = true
		w.redis.lose(false, true)
		w.workAt = time.Now().Add(5 * time.Second)
		w.change() // has the board adopted, and waits
	}, func(w *modelEnv) {
		w.run(4 * time.Second)
		if w.feed().replica.readable.Load() {
			w.fail("open without a checksum")
		}
	})
}

// A board that a writer is adding up is not to be added up again for that: each new run would close all copies, which
// would ask again.
func TestModelAdoptionEnds(t *testing.T) {
	modelCase(t, func(w *modelEnv) { w.changes(30) }, func(w *modelEnv) {
		w.run(3 * time.Second)
		w.redis.slowAdopt = true
		w.redis.lose(false, true)
		w.workAt = time.Now().Add(3 * time.Second)
		w.change() // has the board adopted, and waits
		adopted := w.redis.state().Run
		w.run(10 * time.Second)
		if w.wantRun(); w.redis.state().Run != adopted {
			w.fail("adopted as run %d, and again as %d", adopted, w.redis.state().Run)
		}
	})
}

// Late updates that Redis has lost wait behind one that nobody produced. A look at Redis shows what they are, so that
// none closes the board when its turn comes.
func TestModelLateUpdatesOfALostHistory(t *testing.T) {
	modelCase(t, func(w *modelEnv) { w.changes(20) }, func(w *modelEnv) {
		w.run(2 * time.Second)
		for range 10 {
			w.change()
		}
		late := w.producers[0].queue[1:]
		w.producers[0].queue = nil
		w.redis.failOver(10)
		w.run(3 * time.Second)
		closed := w.side.boards.closed()
		w.producers[0].queue = late
		w.run(3 * time.Second)
		w.changes(15)
		w.run(time.Second)
		if w.wantRun(); w.side.boards.closed() != closed {
			w.fail("closed %d times", w.side.boards.closed()-closed)
		}
	})
}

// A new run of the same state, which a durable board gets in each era, is taken as it comes: by an
// update, by a look at Redis before one, or both in turn. The board is neither closed nor filled.
func TestModelNewRunOfTheSameState(t *testing.T) {
	modelCase(t, func(w *modelEnv) {
		w.redis.durable = true
		w.changes(30)
	}, func(w *modelEnv) {
		w.run(4 * time.Second)
		for range 3 {
			w.redis.failOver(0)
			w.changes(3) // from n+1 on the updates are of the new run
			w.run(4 * time.Second)
			w.redis.failOver(0)
			w.redis.turnNow() // Redis tells the new run at n
			w.run(4 * time.Second)
			w.wantRun()
			w.changes(3)
			w.change() // Redis is ahead, in the new run
			w.redis.failOver(0)
			w.change()
			w.producers[0].stalled = time.Now().Add(3 * time.Second)
			w.run(6 * time.Second)
			w.wantRun()
		}
		if n := w.side.boards.closed(); n > 0 {
			w.fail("closed %d times", n)
		}
	})
}

// A new run that begins before what the board has had, and comes to a state that the board once had, too, goes on
// otherwise than the board did: the board must not be taken for it.
func TestModelNewRunOfAnEarlierState(t *testing.T) {
	modelCase(t, func(w *modelEnv) {
		w.redis.durable, w.members = true, 1
		w.changes(30)
	}, func(w *modelEnv) {
		w.run(4 * time.Second)
		before := w.redis.state()
		w.put(wire.OpSet, 5)
		w.put(wire.OpSet, 7)
		w.run(time.Second)
		w.redis.failOver(2)
		w.put(wire.OpSet, 5)
		w.tick()
		if now := w.redis.state(); now.Seq != before.Seq+1 || now.Run == before.Run {
			w.fail("%v after %v", now, before)
		}
		w.run(3 * time.Second)
		w.wantRun()
	})
}

// put has the one member changed, and its update produced.
func (w *modelEnv) put(op wire.Op, value float64) {
	u, _ := w.redis.change(op, "m0", value, time.Now())
	w.kafka.produce(&u)
}

// wantRun checks that the open board has the run of Redis.
func (w *modelEnv) wantRun() {
	if got, want := w.side.boards.board.State(), w.redis.state(); got != want {
		w.fail("the board is at %v, Redis at %v", got, want)
	}
}

// An era begins with the loss of updates that the board has, or of such that it has not: a board that
// has what is lost is filled.
func TestModelNewRunAfterALoss(t *testing.T) {
	for name, has := range map[string]bool{"has it": true, "has it not": false} {
		t.Run(name, func(t *testing.T) {
			modelCase(t, func(w *modelEnv) {
				w.redis.durable = true
				w.changes(30)
			}, func(w *modelEnv) {
				w.run(4 * time.Second)
				if has {
					w.changes(5)
				} else {
					for range 5 {
						w.change()
					}
				}
				lost := w.producers[0].queue
				w.producers[0].queue = nil
				w.awaitReading()
				w.redis.failOver(5)
				w.changes(8)
				w.run(20 * time.Millisecond)
				w.producers[0].queue = append(w.producers[0].queue, lost...) // come late
				w.run(4 * time.Second)
				w.wantRun()
				if n := w.side.boards.closed(); (n > 0) != has {
					w.fail("closed %d times", n)
				}
			})
		})
	}
}

// A board whose sorted set is not the one of its meta is not opened: a sample can't tell it
// from one of a lost history (seed 5227).
func TestModelBoardWithoutAChecksumIsNotOpened(t *testing.T) {
	modelCase(t, func(w *modelEnv) {
		w.changes(30)
		w.workAt = time.Now().Add(time.Hour)
		w.redis.lose(true, false) // ZCARD and meta differ
	}, func(w *modelEnv) {
		w.run(4 * time.Second)
		if w.feed().replica.readable.Load() {
			w.fail("open without a checksum")
		}
		w.workAt = time.Now()
	})
}

// While a board waits for the updates up to a state of Redis, Redis loses that state. The
// updates come, and the board has the state: it must not be opened.
func TestModelTargetIsLost(t *testing.T) {
	modelCase(t, func(w *modelEnv) {
		w.changes(25)
		for range 5 { // in Redis, and not in the log yet
			w.change()
		}
		w.producers[0].stalled = time.Now().Add(300 * time.Millisecond)
	}, func(w *modelEnv) {
		w.run(200 * time.Millisecond)
		w.kafka.parts[0].stalled = time.Now().Add(10 * time.Second)
		w.run(4 * time.Second)
		w.redis.failOver(8)
		w.run(10 * time.Second)
		if n := w.side.boards.closed(); n > 0 {
			w.fail("a board that Redis has lost was opened")
		}
	})
}

// Redis loses a run, and its earlier one goes on to the lost one's seq.
func TestModelRunIsLost(t *testing.T) {
	modelCase(t, func(w *modelEnv) { w.changes(30) }, func(w *modelEnv) {
		w.run(time.Second)
		w.redis.lose(true, false)
		w.change()
		w.run(8 * time.Second) // until Redis is read rarely
		w.awaitReading()
		w.redis.failOver(3)
		w.change() // reaches the lost run's seq
		w.producers[0].queue = nil
		w.run(4 * time.Second)
	})
}

// awaitReading waits until Redis was read again.
func (w *modelEnv) awaitReading() {
	before, _ := w.feed().sources.totals()
	for latest := before; latest.requested.Equal(before.requested) && !w.failed.Load(); latest, _ = w.feed().sources.totals() {
		w.tick()
	}
}

// Redis has a wrong checksum, and loses changes while the board is loaded again and
// again: a load that is older than the one before must not be refused for ever.
func TestModelLoadAfterALoss(t *testing.T) {
	modelCase(t, func(w *modelEnv) {
		w.changes(20)
		w.redis.byHand(func(set map[string]float64) { set[slices.Min(slices.Collect(maps.Keys(set)))] = 1000 })
		w.changes(20)
	}, func(w *modelEnv) {
		for w.logged("board loaded from Redis") == 0 || w.logged("board is not open") < 2 && !w.failed.Load() {
			w.tick()
		}
		w.redis.failOver(10)
	})
}

// logged returns how often the sidecar logged a text.
func (w *modelEnv) logged(text string) int { return strings.Count(w.text.String(), text) }

// The board is read from its file while Redis does not answer, and one of its writers
// brings updates ahead of the other.
func TestModelStaleBoardIsInOrder(t *testing.T) {
	modelCase(t, func(w *modelEnv) {
		w.files = &modelFiles{rng: w.random(3)}
		w.producers = make([]modelProducer, 2)
		w.changes(20)
	}, func(w *modelEnv) {
		w.run(6 * time.Second) // until there is a file
		w.files.freeze()
		w.producers[0].stalled = time.Now().Add(3 * time.Second)
		for range 20 {
			w.change()
		}
		w.produce(time.Now())
		w.run(time.Second)
		w.redis.answer(true, 0)
		w.until["redis"] = time.Now()
		w.restart()
		w.run(3 * time.Second)
	})
}

// A board's topic gets a second partition: the board is closed, says why and what to do, and
// comes back with a topic of one partition.
func TestModelTopicIsSplit(t *testing.T) {
	modelCase(t, func(w *modelEnv) { w.changes(30) }, func(w *modelEnv) {
		w.run(2 * time.Second)
		if !w.equal() {
			w.fail("not open")
		}
		w.kafka.grow(1)
		w.changes(10)
		w.run(2 * time.Second)
		for _, restart := range []func(){func() {}, w.restart} {
			restart()
			w.run(2 * time.Second)
			ready, why := w.side.runner.Ready()
			if s := w.feed().describe(); w.feed().replica.visible() || !strings.Contains(s.Reason, "has 2 partitions") || !ready && !strings.Contains(why, s.Reason) {
				w.fail("%+v; %s", s, why)
			}
		}
		w.run(noTopicDeadline)
		if s := w.feed().describe(); s.State != rankcache.StateGivenUp || !strings.Contains(s.Reason, "delete the topic") {
			w.fail("%+v", s)
		}
	})
}

// Without a walk, a quiet board that is wrong is found by its checksum: after a wrong
// update, and after Redis gave a seq out again.
func TestModelChecksumOfAQuietBoard(t *testing.T) {
	for name, do := range map[string]func(w *modelEnv){
		"wrong update": func(w *modelEnv) {
			w.side.boards.board.injure(true, "", false)
			w.change()
		},
		"seq given out again": func(w *modelEnv) {
			w.redis.failOver(1)
			w.change()
			w.producers[0].queue = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			modelCase(t, func(w *modelEnv) { w.noWalk = true; w.changes(30) }, func(w *modelEnv) {
				w.run(time.Second)
				do(w)
				w.run(4 * time.Second)
				if w.side.boards.closed() == 0 {
					w.fail("it was not found")
				}
			})
		})
	}
}

// An update of a seq that the board had with another checksum closes it, before Redis can
// be reached.
func TestModelLateUpdateOfAnotherHistory(t *testing.T) {
	modelCase(t, func(w *modelEnv) { w.noWalk = true; w.changes(30) }, func(w *modelEnv) {
		w.run(time.Second)
		w.redis.failOver(1)
		w.change()
		w.redis.answer(true, 0)
		w.until["redis"] = time.Now().Add(time.Second)
		w.run(500 * time.Millisecond)
		if w.side.boards.closed() == 0 {
			w.fail("it is open")
		}
	})
}

// A member that changed in memory is found by the walk, which compares it with Redis, or
// adds up what readers see.
func TestModelMemoryChanges(t *testing.T) {
	for _, byScore := range []bool{true, false} {
		t.Run(fmt.Sprint(byScore), func(t *testing.T) {
			modelCase(t, func(w *modelEnv) { w.changes(30) }, func(w *modelEnv) {
				w.run(time.Second)
				for m := range w.members {
					if w.side.boards.board.changed == "" {
						w.side.boards.board.injure(false, fmt.Sprint("m", m), byScore)
					}
				}
				w.run(modelWalk)
				if w.side.boards.closed() == 0 {
					w.fail("it was not found")
				}
			})
		})
	}
}

// Redis fails over again and again. Each time the board is loaded, and is right: the next load
// waits for nothing.
func TestModelFailoversDoNotAddUp(t *testing.T) {
	modelCase(t, func(w *modelEnv) { w.changes(30) }, func(w *modelEnv) {
		w.run(5 * time.Second)
		for i := range 9 {
			w.changes(20)
			w.run(2 * time.Second)
			w.redis.failOver(10)
			w.change()
			w.run(5 * time.Second)
			if !w.feed().replica.readable.Load() {
				w.fail("not read again 5 s after failover %d", i+1)
			}
			w.run(13 * time.Second)
		}
		if n := w.logged("board loaded from Redis"); n < 5 {
			w.fail("loaded %d times: nothing was lost", n)
		}
	})
}
