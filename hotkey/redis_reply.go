package hotkey

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// hotKeysSession is what HOTKEYS GET says of one tracking session.
type hotKeysSession struct {
	active bool
	start  int64 // Unix ms by the server's clock; names the session
	length time.Duration
	byCPU  []keyCPU
}

type keyCPU struct {
	key string
	us  int64 // CPU time
}

// maxHotKeysLength is the longest session believed in: beyond it the arithmetic
// would overflow.
const maxHotKeysLength = int64(365 * 24 * time.Hour / time.Millisecond)

// parseHotKeys reads an answer of HOTKEYS GET as the client decoded it: fields
// and values in turn, or a map, or either as the only element of a list, as
// servers with several shards wrap it.
func parseHotKeys(reply any) (s hotKeysSession, err error) {
	if list, ok := reply.([]any); ok && len(list) <= 1 {
		if len(list) == 0 {
			return s, nil
		}
		reply = list[0]
	}
	fields, err := hotKeysFields(reply)
	if err != nil {
		return s, err
	}
	active, okActive := number(fields["tracking-active"])
	length, okLength := number(fields["collection-duration-ms"])
	start, okStart := number(fields["collection-start-time-unix-ms"])
	if !okActive || !okLength || !okStart || length < 0 || length > maxHotKeysLength {
		return s, errors.New("unexpected answer to HOTKEYS GET: no state, start or duration in it")
	}
	s = hotKeysSession{active: active == 1, start: start, length: time.Duration(length) * time.Millisecond}
	s.byCPU, err = keysByCPU(fields["by-cpu-time-us"])
	return s, err
}

// hotKeysFields returns the fields by name.
func hotKeysFields(reply any) (map[any]any, error) {
	if m, ok := reply.(map[any]any); ok {
		return m, nil
	}
	list, ok := reply.([]any)
	if !ok || len(list)%2 != 0 {
		return nil, fmt.Errorf("unexpected answer to HOTKEYS GET: %T", reply)
	}
	fields := make(map[any]any, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		name, ok := list[i].(string)
		if !ok {
			return nil, fmt.Errorf("unexpected answer to HOTKEYS GET: field name is a %T", list[i])
		}
		fields[name] = list[i+1]
	}
	return fields, nil
}

// keysByCPU reads keys and their CPU time in turn; no list means that the
// session tracks something else.
func keysByCPU(v any) (keys []keyCPU, err error) {
	list, _ := v.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		key, okKey := list[i].(string)
		us, okTime := number(list[i+1])
		if !okKey || !okTime || us < 0 {
			return nil, errors.New("unexpected answer to HOTKEYS GET: want keys and CPU times in turn")
		}
		keys = append(keys, keyCPU{key, us})
	}
	return keys, nil
}

// number reads what servers write as a number or as text.
func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}
