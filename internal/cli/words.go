package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// inOurWords returns the error of a flag's value without those of Go's parsers, which name functions and packages.
func inOurWords(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	cause := invalid.Unwrap().Error()
	want := ""
	switch {
	case strings.HasPrefix(cause, "time: "):
		want = "want a number with its unit, such as 500ms, 10s or 1h30m"
	case strings.HasPrefix(cause, "strconv.ParseBool"):
		want = "want true or false"
	case strings.HasPrefix(cause, "strconv."):
		want = "want a number that is not too large"
	default:
		return err
	}
	return &ExitError{ExitUsage, errors.New("--" + invalid.GetFlag().Name + " " + invalid.GetValue() + ": " + want)}
}
