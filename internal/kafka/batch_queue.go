//go:build !kafkapoll

package kafka

/*
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// What is used of librdkafka's public interface. The wrapper links the library and has its header.
typedef struct {
	int32_t err;
	const void *topic;
	int32_t partition;
	void *payload;
	size_t len;
	void *key;
	size_t key_len;
	int64_t offset;
	void *private;
} message_t;

typedef struct {
	const char *topic;
	int32_t partition;
	int64_t offset;
} partition_t;

void *rd_kafka_queue_poll(void *queue, int timeout_ms);
int rd_kafka_event_type(const void *event);
const message_t *rd_kafka_event_message_next(void *event);
int rd_kafka_event_error(void *event);
const char *rd_kafka_event_error_string(void *event);
int rd_kafka_event_error_is_fatal(void *event);
partition_t *rd_kafka_event_topic_partition(void *event);
void rd_kafka_topic_partition_destroy(partition_t *partition);
void rd_kafka_event_destroy(void *event);
const char *rd_kafka_topic_name(const void *topic);

enum { batch_records = 256, event_fetch = 2 };

// A batch is what was taken from a queue.
typedef struct {
	struct {
		void *event; // holds the memory of the others
		const message_t *message;
		const char *topic;
	} records[batch_records];
	int n;
	size_t bytes; // of the values
	void *other;  // the event behind the records
} batch_t;

// take fills a batch with up to n of the records that are there, until they have so many bytes.
static void take(void *queue, batch_t *b, int n, size_t bytes) {
	b->bytes = 0;
	b->other = NULL;
	for (b->n = 0; b->n < n && b->bytes < bytes; b->n++) {
		void *event = rd_kafka_queue_poll(queue, 0);
		if (event == NULL)
			return;
		const message_t *m = rd_kafka_event_type(event) == event_fetch ? rd_kafka_event_message_next(event) : NULL;
		if (m == NULL || m->err) {
			b->other = event;
			return;
		}
		b->records[b->n].event = event;
		b->records[b->n].message = m;
		b->records[b->n].topic = rd_kafka_topic_name(m->topic);
		b->bytes += m->len;
	}
}

// release frees what take took, and leaves no pointer to it.
static void release(batch_t *b) {
	for (int i = 0; i < b->n; i++)
		rd_kafka_event_destroy(b->records[i].event);
	if (b->other != NULL)
		rd_kafka_event_destroy(b->other);
	memset(b, 0, sizeof *b);
}
*/
import "C"

import (
	"reflect"
	"unsafe"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// queue is librdkafka's queue of a consumer, and what was taken from it.
type queue struct {
	c     unsafe.Pointer
	batch C.batch_t
}

// newQueue returns a client's queue, which the wrapper keeps to itself: a panic shows that a later one has moved it.
func newQueue(c *ck.Consumer) *queue {
	return &queue{c: reflect.ValueOf(c).Elem().FieldByName("handle").FieldByName("rkq").UnsafePointer()}
}

// Records stores in into the records that are there, and returns how many and the event behind
// them, nil if there is none now: an [Error] or a [PartitionEOF]. It is for consumers that assign
// their partitions themselves, does not wait, and belongs to one goroutine, as Poll does. The
// values have their memory in common: who keeps a part of one keeps all of them.
//
// Two calls of C for all records, instead of one for each, are half of the CPU of reading.
func (c *Consumer) Records(into []Record) (n int, other Event) {
	b := &c.queue.batch
	C.take(c.queue.c, b, C.int(min(len(into), len(b.records))), maxBatchBytes)
	defer C.release(b)
	values := make([]byte, 0, b.bytes)
	var topic *C.char
	var name string
	for i := range b.records[:b.n] {
		r, from := &b.records[i], len(values)
		if r.topic != topic {
			topic, name = r.topic, C.GoString(r.topic)
		}
		values = append(values, unsafe.Slice((*byte)(r.message.payload), r.message.len)...)
		into[i] = Record{Topic: name, Partition: int32(r.message.partition), Offset: int64(r.message.offset), Value: values[from:len(values):len(values)]}
	}
	other = eventOf(b.other)
	c.first.note(other)
	return int(b.n), other
}

// eventOf returns an event other than a record, nil for those that a consumer without a group needs not.
func eventOf(event unsafe.Pointer) Event {
	if event == nil {
		return nil
	}
	switch code := ck.ErrorCode(C.rd_kafka_event_error(event)); code {
	case ErrNoError:
		return nil
	case ErrPartitionEOF:
		p := C.rd_kafka_event_topic_partition(event)
		defer C.rd_kafka_topic_partition_destroy(p)
		at := On(C.GoString(p.topic), int32(p.partition))
		at.Offset = Offset(p.offset)
		return PartitionEOF(at)
	default:
		return ck.NewError(code, C.GoString(C.rd_kafka_event_error_string(event)), C.rd_kafka_event_error_is_fatal(event) != 0)
	}
}
