package apitest

import (
	"fmt"
	"path"

	"github.com/getkin/kin-openapi/openapi3"
)

// init teaches the validator the formats that the document explains.
func init() {
	for _, limit := range []int{64, 128} {
		define(fmt.Sprintf("utf8-%d", limit), func(s string) error {
			if len(s) > limit {
				return fmt.Errorf("%d bytes, want at most %d", len(s), limit)
			}
			return nil
		})
	}
	define("glob", func(s string) error {
		_, err := path.Match(s, "")
		return err
	})
}

func define(format string, check func(string) error) {
	openapi3.DefineStringFormatValidator(format, openapi3.NewCallbackValidator(check))
}
