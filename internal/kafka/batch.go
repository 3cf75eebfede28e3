package kafka

// Record is a record of a topic, as [Consumer.Records] returns it.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Value     []byte
}

const maxBatchBytes = 1 << 20 // bounds the values that one call of [Consumer.Records] returns, the last one aside
