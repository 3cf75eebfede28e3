package resp

// transaction is what a connection has begun by MULTI or WATCH.
type transaction struct {
	multi, watching bool
	refused         bool // a command of it was
}

// isPinned reports whether commands must go to the upstream that has it.
func (t *transaction) isPinned() bool { return t.multi || t.watching }

// passed takes note of a command with so many arguments.
func (t *transaction) passed(v verb, args int) {
	switch {
	case v == multi && args == 0:
		t.multi = true
	case v == watch && args > 0 && !t.multi:
		t.watching = true
	case (v == exec || v == discard) && args == 0 && t.multi:
		*t = transaction{}
	case v == unwatch && args == 0 && !t.multi:
		t.watching = false
	}
}
