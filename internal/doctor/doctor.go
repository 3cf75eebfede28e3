// Package doctor checks the dependencies of rankcache and gives advice about failures. The entry function is [Run].
//
// Run makes the checks one after the other, each under a deadline (doctor.go). The checks of Redis (redis.go, acl.go,
// expiry.go) and of Kafka (kafka.go, ledger.go) only read; those of a database (database.go) also try statements that
// touch no row; those of folders (folder.go) create a file and remove it; [Call] checks any other service by one call.
// Pure functions judge the results (judge.go), and explain turns an error into advice. No finding contains a secret.
//
// # Words
//
//	check    one thing to look at, with the checks on which it depends
//	verdict  the outcome of a check: ok, warn, fail, unknown or skip, and advice
//	finding  a verdict with the name of its check
//	role     the part of rankcache whose Redis commands are checked
//	survey   the settings of the update topics, as Kafka returns them
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Status is the outcome of one check.
type Status string

// Outcomes. A check is unknown when the server could not be asked, and skipped when one on which it depends failed, is
// unknown or was skipped.
const (
	OK      Status = "ok"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Unknown Status = "unknown"
	Skip    Status = "skip"
)

// Verdict is the outcome of a check and one line with the reason or what to do.
type Verdict struct {
	Status Status `json:"status"`
	Advice string `json:"advice"`
}

// Finding is a verdict and the name of its check; its JSON is stable.
type Finding struct {
	Check string `json:"check"`
	Verdict
}

// Check is one thing to look at. Look should return soon after ctx is done.
type Check struct {
	Name  string
	Needs []string // names of the checks on which this one depends
	Look  func(context.Context) Verdict
}

// lookGrace is how long a check may take beyond its deadline to return the reason.
const lookGrace = time.Second

// Run makes the checks in order, each within the deadline, and calls found with
// every finding. A check that does not return is abandoned.
func Run(ctx context.Context, checks []Check, deadline time.Duration, found func(Finding)) {
	causes := map[string]string{} // of each check that did not pass: what the first of them did
	for _, c := range checks {
		cause := ""
		for _, name := range c.Needs {
			cause = cmp.Or(cause, causes[name])
		}
		v := Verdict{Skip, "not checked: " + cause}
		if cause == "" {
			v = look(ctx, c, deadline)
		}
		switch v.Status {
		case Fail:
			causes[c.Name] = c.Name + " failed"
		case Unknown:
			causes[c.Name] = c.Name + " could not be looked at"
		case Skip:
			causes[c.Name] = cmp.Or(cause, c.Name+" was not checked")
		}
		found(Finding{c.Name, v})
	}
}

func look(ctx context.Context, c Check, deadline time.Duration) Verdict {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	done := make(chan Verdict, 1)
	go func() { done <- c.Look(ctx) }()
	select {
	case v := <-done:
		return v
	case <-time.After(deadline + lookGrace):
		return Unasked(fmt.Errorf("no answer within %v", deadline))
	}
}

func okf(format string, args ...any) Verdict   { return Verdict{OK, fmt.Sprintf(format, args...)} }
func warnf(format string, args ...any) Verdict { return Verdict{Warn, fmt.Sprintf(format, args...)} }
func failf(format string, args ...any) Verdict { return Verdict{Fail, fmt.Sprintf(format, args...)} }

// Unasked returns the verdict of a check whose server could not be asked: it is away, or does not tell this user.
// Nothing is known then of what was to be looked at.
func Unasked(err error) Verdict { return Verdict{Unknown, "can't look: " + explain(err)} }

// Call returns the check that makes one call of a service. Its verdict has the time
// that the call took, or the error and what to do about it.
func Call(name string, needs []string, call func(context.Context) error) Check {
	return Check{Name: name, Needs: needs, Look: func(ctx context.Context) Verdict {
		begin := time.Now()
		if err := call(ctx); err != nil {
			return Verdict{Fail, explain(err)}
		}
		return okf("answered in %v", time.Since(begin).Round(10*time.Microsecond))
	}}
}

// Boards returns the check that reads which boards are super-hot, on which other checks depend;
// read returns their number.
func Boards(read func(context.Context) (int, error)) Check {
	return Check{CheckBoards, []string{CheckRooms, CheckRedis}, func(ctx context.Context) Verdict {
		n, err := read(ctx)
		if err != nil {
			return Unasked(fmt.Errorf("which boards are super-hot: %w", err))
		}
		return okf("%d boards are super-hot", n)
	}}
}

// remedies are the advice for errors that contain one of the words. The first match is used.
var remedies = []struct{ words, advice string }{
	{"wrongpass|noauth|invalid username-password|without any password configured", "Redis refuses the user or the password: check --redis, --redis-user and --redis-password"},
	{"3d000|unknown database|to database '", "there is no database of this name, or the user may not use it: make it, grant it, or check the path of the URL in --database"},
	{"password authentication failed|access denied for user", "the database refuses the user or the password: check --database"},
	{"noperm", "Redis refuses the command to this user: grant it by ACL"},
	{"cluster support disabled", "this Redis is not a cluster: use --redis-mode single"},
	{"first record does not look like a tls handshake", "the server's port has no TLS: use the TLS port, or redis:// and http:// without TLS"},
	{"certificate|x509", "the server's TLS certificate is not trusted: check its name and the authority that signed it"},
	{"tls: |ssl handshake", "the TLS handshake failed: check whether the port has TLS and requires a client certificate"},
	{"sasl|authentication", "Kafka refuses the user or the password: check kafka.security.protocol and kafka.sasl.*"},
	{"authorization failed|not authorized", "Kafka refuses access to this user: grant Read and Describe on the update topics"},
	{"connection refused", "nothing listens on that address: check the address and that the server is running"},
	{"no such host|failed to resolve|name or service not known", "unknown host name: check its spelling and the DNS"},
	{"loading", "Redis is loading its data: try again later"},
	{"eof|connection reset", "the server closed the connection: a port with TLS needs rediss://, https:// or kafka.security.protocol=ssl"},
	{"http 401|http 403|answered 401|answered 403", "the service refuses the request: check its credentials, such as --profile-header"},
	{"http 404|http 405|answered 404|answered 405", "the service has no such path: check the path of the URL"},
	{"transport failure|all brokers are down|timed out|i/o timeout|deadline exceeded", "no answer in time: check the address, firewalls and network policies, and that the server is not overloaded"},
}

// explain returns what to do about a client's error, followed by the error.
func explain(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if timeout := net.Error(nil); errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		text += " (deadline exceeded)"
	}
	low := strings.ToLower(text)
	for _, r := range remedies {
		for word := range strings.SplitSeq(r.words, "|") {
			if strings.Contains(low, word) {
				return r.advice + " (" + text + ")"
			}
		}
	}
	return text
}
