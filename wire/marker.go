package wire

import "bytes"

// marker is not a command: it has no member.
var marker = []byte(`{"v":1,"marker":"end"}`)

// Marker returns the record of the command topic that tells the controller how far the
// writers have come: once they have committed it, every command before it is applied.
// Writers apply nothing for it and refuse nothing. The slice is the caller's.
func Marker() []byte { return bytes.Clone(marker) }

// IsMarker reports whether a record of the command topic is a [Marker].
func IsMarker(record []byte) bool { return bytes.Equal(record, marker) }
