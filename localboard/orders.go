package localboard

import "hash/maphash"

// orders remembers the order numbers applied to a board whose producer keeps no
// seq, as 128-bit hashes: with a billion of them, the odds that two share one
// are under 1 in 10^20. The seeds are this process's own, so that nobody can
// choose order numbers that collide. It grows with the number of orders.
type orders struct {
	seeds [2]maphash.Seed
	seen  map[[2]uint64]struct{}
}

func newOrders() orders {
	return orders{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// add notes an order number and returns false if it had come before.
func (o *orders) add(no string) bool {
	if o.seen == nil {
		o.seen = make(map[[2]uint64]struct{})
	}
	before := len(o.seen)
	o.seen[[2]uint64{maphash.String(o.seeds[0], no), maphash.String(o.seeds[1], no)}] = struct{}{}
	return len(o.seen) > before
}

func (o *orders) bytes() int {
	const entry = 28 // 16 bytes and a control byte, at the map's usual fill
	return entry * len(o.seen)
}
