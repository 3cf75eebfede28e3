package testkit

import "os"

// The environment variables that steer the tests.
const (
	EnvRedis       = "RANKCACHE_TEST_REDIS"   // host:port of a running redis-server
	EnvKafka       = "RANKCACHE_TEST_KAFKA"   // host:port of a running broker
	EnvRequireReal = "RANKCACHE_REQUIRE_REAL" // "1": a missing server is a failure
	EnvFull        = "RANKCACHE_FULL"         // "1": full-size tests
)

// Full reports whether tests shall run in full size (RANKCACHE_FULL=1), as CI does, rather than in the size that suits a developer who waits.
func Full() bool { return os.Getenv(EnvFull) == "1" }

// RequireReal reports whether a missing server is a failure (RANKCACHE_REQUIRE_REAL=1).
func RequireReal() bool { return os.Getenv(EnvRequireReal) == "1" }
