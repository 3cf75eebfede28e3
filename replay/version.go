package replay

import "github.com/confluentinc/confluent-kafka-go/v2/kafka"

// ClientVersion returns the version of librdkafka, the Kafka client.
func ClientVersion() string {
	_, text := kafka.LibraryVersion()
	return text
}
