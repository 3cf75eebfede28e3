// Package kafka has the program's clients of Kafka: it alone imports the wrapper of librdkafka.
// Names that several packages need are the wrapper's own; what is here besides is what all
// clients have in common: their settings, their log, and questions about topics and offsets.
package kafka

import (
	"context"
	"errors"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

type (
	Message            = ck.Message
	Header             = ck.Header
	TopicPartition     = ck.TopicPartition
	Offset             = ck.Offset
	Error              = ck.Error
	Event              = ck.Event
	PartitionEOF       = ck.PartitionEOF
	AssignedPartitions = ck.AssignedPartitions
	RevokedPartitions  = ck.RevokedPartitions
	TopicSpec          = ck.TopicSpecification
	TopicResult        = ck.TopicResult
	TopicDescription   = ck.TopicDescription
	TopicSettings      = ck.ConfigResourceResult
	OffsetSpec         = ck.OffsetSpec
	OffsetResult       = ck.ListOffsetsResultInfo
	Right              = ck.ACLOperation
)

const (
	PartitionAny    = ck.PartitionAny
	OffsetBeginning = ck.OffsetBeginning
	OffsetInvalid   = ck.OffsetInvalid // none
	OffsetEnd       = ck.OffsetEnd
	First           = ck.EarliestOffsetSpec     // the first record of a partition
	End             = ck.LatestOffsetSpec       // behind its last one
	Newest          = ck.MaxTimestampOffsetSpec // the one with the latest time
	NoTime          = ck.TimestampNotAvailable
	LogAppendTime   = ck.TimestampLogAppendTime
	MayRead         = ck.ACLOperationRead
	MayWrite        = ck.ACLOperationWrite
	MayDelete       = ck.ACLOperationDelete

	ErrNoError            = ck.ErrNoError
	ErrUnknownTopicOrPart = ck.ErrUnknownTopicOrPart
	ErrUnknownTopic       = ck.ErrUnknownTopic
	ErrUnknownPartition   = ck.ErrUnknownPartition
	ErrGroupIDNotFound    = ck.ErrGroupIDNotFound
	ErrAutoOffsetReset    = ck.ErrAutoOffsetReset
	ErrOffsetOutOfRange   = ck.ErrOffsetOutOfRange
	ErrFencedInstanceID   = ck.ErrFencedInstanceID
	ErrPartitionEOF       = ck.ErrPartitionEOF
	ErrState              = ck.ErrState // of a partition that is not fetched yet
	ErrTransport          = ck.ErrTransport
	ErrResolve            = ck.ErrResolve
	ErrSsl                = ck.ErrSsl
	ErrTooLarge           = ck.ErrMsgSizeTooLarge
)

// Since returns the spec of the first record at a time or later.
func Since(at time.Time) OffsetSpec { return ck.NewOffsetSpecForTimestamp(at.UnixMilli()) }

// On returns a partition of a topic.
func On(topic string, partition int32) TopicPartition {
	return TopicPartition{Topic: &topic, Partition: partition}
}

// Code returns Kafka's code of an error, ErrNoError if it has none.
func Code(err error) ck.ErrorCode {
	e, _ := errors.AsType[Error](err)
	return e.Code()
}

// Follows reports whether an error only follows from others: that all brokers are down, which names none.
func Follows(err error) bool { return Code(err) == ck.ErrAllBrokersDown }

// Fatal reports whether the client that returned an error will never work again.
func Fatal(err error) bool {
	e, ok := errors.AsType[Error](err)
	return ok && e.IsFatal()
}

// Refused reports whether Kafka refuses what its user has asked for, which waiting does not change.
func Refused(err error) bool {
	switch Code(err) {
	case ck.ErrTopicAuthorizationFailed, ck.ErrGroupAuthorizationFailed, ck.ErrClusterAuthorizationFailed, ck.ErrSaslAuthenticationFailed, ck.ErrAuthentication:
		return true
	}
	return false
}

func Version() string {
	_, text := ck.LibraryVersion()
	return text
}

// KeepLogin calls login, which may be nil, until stop is called: it calls set with each new user name and password.
func KeepLogin(ctx context.Context, login func(ctx context.Context, set func(username, password string) error), set func(username, password string) error) (stop func()) {
	if login == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); login(ctx, set) }()
	return func() { cancel(); <-ended }
}
