package replay

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// login tells why Kafka does not answer if it refuses our user or password: requests then
// only time out, and only librdkafka's log has the reason. It may be used concurrently.
type login struct {
	user    atomic.Pointer[string]
	refused atomic.Pointer[string] // the log's message of the last failed connection, if that was a refused login
}

// saslFailure is in librdkafka's log lines about logins.
const saslFailure = "SASL authentication error: "

// note takes a line of librdkafka's log. FAIL is the tag of those about failed connections.
func (l *login) note(line *kafka.LogEvent) {
	if line.Tag != "FAIL" {
		return
	}
	if _, why, ok := strings.Cut(line.Message, saslFailure); ok {
		l.refused.Store(&why)
	} else {
		l.refused.Store(nil)
	}
}

// explain returns err, or why the login failed if that is the cause. Without an err the
// login works.
func (l *login) explain(err error) error {
	why := l.refused.Load()
	if err == nil {
		l.refused.Store(nil)
		return nil
	}
	if why == nil || fatal(err) {
		return err
	}
	user := ""
	if u := l.user.Load(); u != nil && *u != "" {
		user = " for user " + *u
	}
	return fmt.Errorf("kafka authentication failed%s: %s; check --kafka.sasl.username, --kafka.sasl.password and --kafka.sasl.mechanism", user, *why)
}
