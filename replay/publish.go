package replay

import "time"

// soil notes a board to be published. One that is not readable is published
// when it is opened.
func (p *pump) soil(f *follower) {
	if f.dirty || !f.shown() {
		return
	}
	f.dirty = true
	p.dirty = append(p.dirty, f)
}

// publishSoon has the dirty boards published: at once if the last time is long
// enough ago, else when it will be, also if nothing more arrives until then.
func (p *pump) publishSoon() {
	if len(p.dirty) == 0 || p.armed {
		return
	}
	wait := p.every - time.Since(p.published)
	if wait <= 0 {
		p.publish()
		return
	}
	p.armed = true
	p.timer.Reset(wait)
}

func (p *pump) publish() {
	p.armed = false
	for _, f := range p.dirty {
		f.publish()
		f.dirty = false
	}
	clear(p.dirty)
	p.dirty = p.dirty[:0]
	p.published = time.Now()
}
