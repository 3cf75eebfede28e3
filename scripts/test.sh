#!/usr/bin/env bash
# Runs go test with the race detector against one redis-server and one Kafka broker that all packages share.
#
#   scripts/test.sh                            all packages
#   scripts/test.sh -run TestGate ./replay     what go test takes
#
# RANKCACHE_FULL=1 runs the tests in full size; RANKCACHE_REQUIRE_REAL=1 fails where a real server is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly packages=$#
[ $# -gt 0 ] || set -- ./...

scripts/setup.sh

# What the race detector makes meaningless (it empties sync.Pools) skips itself under it, so it has a run of its own.
if [ "$packages" = 0 ]; then
  go test -count=1 -run 'Alloc|HitRatio' ./profile ./sidecar
fi

# Built and then run, because "go run" passes on neither signals nor the exit code.
go build -o .cache/withservers ./internal/testkit/cmd/withservers
exec .cache/withservers go test -race -timeout "${RANKCACHE_TEST_TIMEOUT:-15m}" "$@"
