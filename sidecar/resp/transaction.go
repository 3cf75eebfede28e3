package resp

import "bytes"

// transaction passes on a command that begins or ends one.
func (c *session) transaction(v verb, cmd *command, n int) error {
	if v == exec && c.refused {
		return c.abort()
	}
	if err := c.pass(v, cmd, n); err != nil {
		return err
	}
	switch alone := len(cmd.args) == 1; {
	case v == multi && alone:
		c.multi = true
	case v == watch && len(cmd.args) > 1 && !c.multi:
		c.watching = true
	case (v == exec || v == discard) && alone && c.multi:
		c.multi, c.watching, c.refused = false, false, false
	case v == unwatch && alone && !c.multi:
		c.watching = false
	}
	return nil
}

// abort ends a transaction of which a command was refused here, as Redis does after an
// error.
func (c *session) abort() error {
	reply, err := c.exchange(appendCommand(nil, "DISCARD"))
	if err != nil {
		return err
	}
	c.multi, c.watching, c.refused = false, false, false
	if reply[0] == '+' {
		reply = []byte("-EXECABORT Transaction discarded because of previous errors.\r\n")
	}
	c.out = append(c.out, reply...)
	return nil
}

// exchange sends one command and returns the reply, which the client does not get.
func (c *session) exchange(raw []byte) ([]byte, error) {
	if err := c.finishRun(); err != nil {
		return nil, err
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	if err := c.open(c.multi || c.watching); err != nil {
		_ = c.away(0, err)
		return []byte(awayReply(err)), nil
	}
	if err := c.up.send(raw, 1, c.server.cfg.WriteTimeout); err != nil {
		return nil, err
	}
	if err := c.receiveAll(false, true); err != nil {
		return nil, err
	}
	reply := bytes.Clone(c.out)
	c.out = c.out[:0]
	return reply, nil
}
