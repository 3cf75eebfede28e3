package kafka

/*
#include <stdlib.h>

int rd_kafka_brokers_add(void *client, const char *brokers);
*/
import "C"

import (
	"reflect"
	"sync"
	"time"
	"unsafe"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// firstBrokers are a client's bootstrap.servers, of which it is told again when it has lost all brokers. By itself it may stand still
// then until its process ends: an answer that names no broker, as where all are fenced for a moment, has librdkafka forget all that it
// knows, those too to which it is just going back (https://github.com/confluentinc/librdkafka/issues/5301, in 2.11 and 2.15).
// Each is told once a second at most; those that it still has stay as they are.
type firstBrokers struct {
	mu     sync.Mutex
	client unsafe.Pointer // nil: closed
	list   string
	due    bool // it is told soon
}

// newFirstBrokers takes a consumer or a producer, whose handle the wrapper keeps to itself: a panic shows that a later one has moved it.
func newFirstBrokers(client any, conf *ck.ConfigMap) *firstBrokers {
	list, _ := (*conf)["bootstrap.servers"].(string)
	handle := reflect.ValueOf(client).Elem().FieldByName("handle")
	return &firstBrokers{client: handle.FieldByName("rk").UnsafePointer(), list: list}
}

// note takes what the client tells.
func (f *firstBrokers) note(ev Event) {
	if err, ok := ev.(Error); !ok || err.Code() != ck.ErrAllBrokersDown {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.due {
		f.due = true
		time.AfterFunc(time.Second, f.tell)
	}
}

func (f *firstBrokers) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.due = false; f.client == nil {
		return
	}
	list := C.CString(f.list)
	defer C.free(unsafe.Pointer(list))
	C.rd_kafka_brokers_add(f.client, list)
}

// close ends the use of the client, before it is closed.
func (f *firstBrokers) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.client = nil
}
