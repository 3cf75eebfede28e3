package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// readRESP returns the reply that buf begins with, errShort if there is less. Its
// body is the whole of it, as it is on the wire.
func readRESP(buf []byte) (reply, error) {
	n, err := sizeRESP(buf)
	if err != nil {
		return reply{size: n}, err
	}
	return reply{size: n, body: buf[:n], length: n}, nil
}

// sizeRESP returns the length of the value that buf begins with. An array is one
// value and its elements, one after the other.
func sizeRESP(buf []byte) (int, error) {
	at := 0
	for values := 1; values > 0; values-- {
		line, _, ok := bytes.Cut(buf[at:], endOfLine)
		if !ok {
			return 0, errShort
		}
		if len(line) == 0 {
			return 0, errors.New("an empty line where a reply should be")
		}
		at += len(line) + len(endOfLine)
		n, err := lengthRESP(line)
		if err != nil {
			return 0, err
		}
		switch line[0] {
		case '$':
			at += n
		case '*':
			values += n
		}
		if len(buf) < at {
			return 0, errShort
		}
	}
	return at, nil
}

// lengthRESP reads the first line of a value: the bytes that follow of a bulk
// string, the elements of an array.
func lengthRESP(line []byte) (int, error) {
	switch line[0] {
	case '+', ':':
		return 0, nil
	case '-':
		return 0, fmt.Errorf("the server answers %.60q", line)
	case '$', '*':
	default:
		return 0, fmt.Errorf("not a reply: %.40q", line)
	}
	n, err := strconv.Atoi(string(line[1:]))
	switch {
	case err != nil || n < -1 || n > 1<<29:
		return 0, fmt.Errorf("a length of %.20q", line)
	case n == -1:
		return 0, errors.New("a null where an answer should be")
	case line[0] == '$':
		n += len(endOfLine)
	}
	return n, nil
}
