package replay

import (
	"errors"
	"strings"
	"testing"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// TestRefusedLoginIsTheCause from its error on, until a connection fails for another
// reason or a request is answered.
func TestRefusedLoginIsTheCause(t *testing.T) {
	late := errors.New("timed out")
	refused := kafka.NewError(kafka.ErrAuthentication, "b: SASL authentication error: Invalid password (after 3ms in state AUTH_REQ)", false)
	explained := func(l *login) bool {
		err := l.explain(late)
		return err != late && strings.Contains(err.Error(), "authentication failed for user app: Invalid password") && strings.Contains(err.Error(), "--kafka.sasl.password")
	}
	var l login
	l.user.Store(new("app"))
	if explained(&l) {
		t.Error("explained before the login was refused")
	}
	l.note(refused)
	l.note(kafka.NewError(kafka.ErrAllBrokersDown, "1/1 brokers are down", false))
	if !explained(&l) {
		t.Error("not explained")
	}
	l.note(kafka.NewError(kafka.ErrTransport, "b: Connect to ipv4#127.0.0.1:9 failed: Connection refused", false))
	if explained(&l) {
		t.Error("still explained so for a broker that is away")
	}
	l.note(refused)
	if l.explain(nil) != nil || explained(&l) {
		t.Error("still explained so after a request was answered")
	}
}
