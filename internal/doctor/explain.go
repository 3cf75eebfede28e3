package doctor

import (
	"context"
	"errors"
	"net"
	"strings"
)

// remedies are what to do about an error that contains one of the words. The
// first that fits counts.
var remedies = []struct{ words, advice string }{
	{"wrongpass|noauth|invalid username-password|without any password configured", "Redis refuses the user or the password: check those in --redis"},
	{"noperm", "the user may not do that: grant it by ACL"},
	{"cluster support disabled", "this Redis is no cluster: use --redis-mode single"},
	{"first record does not look like a tls handshake", "the server speaks no TLS here: use redis:// or the TLS port"},
	{"certificate|x509", "the server's TLS certificate is not trusted: check its name and the authority that signed it"},
	{"tls: |ssl handshake", "the TLS handshake failed: check whether the port speaks TLS and wants a client certificate"},
	{"sasl|authentication", "Kafka refuses the user or the password: check kafka.security.protocol and kafka.sasl.*"},
	{"authorization failed|not authorized", "the user may not do that: grant Read and Describe on the update topics"},
	{"connection refused", "nothing listens there: check the address and that the server runs"},
	{"no such host|failed to resolve|name or service not known", "the host name is not known: check it and the DNS"},
	{"loading", "Redis is loading its data: wait for it"},
	{"eof|connection reset", "the server hung up: a port that speaks TLS wants rediss:// or kafka.security.protocol=ssl"},
	{"transport failure|all brokers are down|timed out|i/o timeout|deadline exceeded", "no answer in time: check the address, firewalls and network policies, and that the server is not overloaded"},
}

// explain turns a client's error into what to do about it, and the error.
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
