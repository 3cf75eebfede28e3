package sidecar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"rankcache"
)

// parseBatch reads {"members":["…"]} with 1 to [rankcache.MaxTop] members. The
// strings are copies.
func parseBatch(data []byte) ([]string, *problem) {
	var req struct {
		Members []string `json:"members"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(&req)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = fmt.Errorf("more than one value")
		}
	}
	if err == nil && !utf8.Valid(data) { // the decoder would name another member
		err = fmt.Errorf("not UTF-8")
	}
	if err != nil {
		return nil, badArgument("members", fmt.Sprintf(`want {"members":["id",…]}: %.100v`, err))
	}
	return req.Members, checkBatch(req.Members)
}

func checkBatch(members []string) *problem {
	if n := len(members); n < 1 || n > rankcache.MaxTop {
		return badArgument("members", fmt.Sprintf("%d members, want 1 to %d", n, rankcache.MaxTop))
	}
	for _, m := range members {
		if err := rankcache.CheckMember(m); err != nil {
			return badArgument("members", err.Error())
		}
	}
	return nil
}
