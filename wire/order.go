package wire

import "crypto/sha256"

// orderFieldLen is the length of an order id's field in its hash. With it a field and its
// header take 16 bytes of Redis's memory, however long the id is.
const orderFieldLen = 10

// OrderField returns the field of an order id in its hash: the beginning of its SHA-256.
func OrderField(orderID string) string {
	sum := sha256.Sum256([]byte(orderID))
	return string(sum[:orderFieldLen])
}

// placeAt is where an order's record has run and seq, as apply.lua packs it: behind the
// mark and the score.
const placeAt = 7 + 8

// OrderPlace returns where in its board's history the change of an order's record is. It
// reports false for what is no record.
func OrderPlace(record string) (run, seq uint64, ok bool) {
	if len(record) < placeAt+7+6 {
		return 0, 0, false
	}
	for _, c := range []byte(record[placeAt : placeAt+7]) {
		run = run<<8 | uint64(c)
	}
	for _, c := range []byte(record[placeAt+7 : placeAt+7+6]) {
		seq = seq<<8 | uint64(c)
	}
	return run, seq, true
}
