package testkit

import "rankcache/internal/testkit/kit"

// Race tells whether the tests run with the race detector.
const Race = kit.Race

// What [kit] has, for tests that need servers too.
var (
	Full       = kit.Full
	FullOnly   = kit.FullOnly
	Eventually = kit.Eventually
	Name       = kit.Name
	NoLeaks    = kit.NoLeaks
	Listen     = kit.Listen
)

// Sized is [kit.Sized].
func Sized[T any](quick, full T) T { return kit.Sized(quick, full) }
