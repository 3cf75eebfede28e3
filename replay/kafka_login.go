package replay

import (
	"fmt"
	"strings"
	"sync/atomic"

	"rankcache/internal/health"
	"rankcache/internal/kafka"
)

// login tells why Kafka does not answer if it refuses our login, as only a polled error does. Concurrent use is safe.
type login struct {
	user    atomic.Pointer[string]
	refused atomic.Pointer[string] // why the last connection failed, if that was a refused login
}

const saslFailure = "SASL authentication error: " // in librdkafka's errors about logins

// note takes a polled error. A refused login may look like a closed connection; errors of errors change nothing.
func (l *login) note(err kafka.Error) {
	if _, why, ok := strings.Cut(err.Error(), saslFailure); ok {
		l.refused.Store(&why)
		return
	}
	switch err.Code() {
	case kafka.ErrTransport, kafka.ErrResolve, kafka.ErrSsl:
		l.refused.Store(nil)
	}
}

// explain returns err, or why the login failed if that is the cause. Without an err the login works.
func (l *login) explain(err error) error {
	why := l.refused.Load()
	if err == nil {
		l.refused.Store(nil)
		return nil
	}
	if why == nil || kafka.Fatal(err) {
		return err
	}
	user := ""
	if u := l.user.Load(); u != nil && *u != "" {
		user = " for user " + *u
	}
	return fmt.Errorf("kafka authentication failed%s: %s; check --kafka.sasl.username, --kafka.sasl.password and --kafka.sasl.mechanism", user, *why)
}

// refusal marks an error, which explain has returned, of a Kafka that refuses the user: waiting changes nothing.
func (l *login) refusal(err error) error {
	if err != nil && (l.refused.Load() != nil || kafka.Refused(err)) {
		return &health.Refusal{Err: err}
	}
	return err
}
