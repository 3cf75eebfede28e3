#!/usr/bin/env bash
# Measures how much of each package its own tests run, on a real Redis and a real Kafka. Prints the total and the ten
# packages with the least, and writes .cache/cover.html. End-to-end tests run rankcache as a process of its own, which
# is not counted.
#
#   scripts/cover.sh [PACKAGE...]     ./... without
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- ./...

scripts/setup.sh
mkdir -p .cache
go build -o .cache/withservers ./internal/testkit/cmd/withservers
status=0
.cache/withservers go test -timeout "${RANKCACHE_TEST_TIMEOUT:-15m}" -coverprofile=.cache/cover.out "$@" >.cache/cover.txt || status=$?
[ $status = 0 ] || grep -v 'coverage:' .cache/cover.txt || true

printf '\nThe ten packages with the least coverage:\n'
sed -nE 's/^(ok)?[[:space:]]*([^[:space:]]+).*coverage: ([0-9.]+%) of statements.*/\3 \2/p' .cache/cover.txt | sort -n | sed 10q
go tool cover -html=.cache/cover.out -o .cache/cover.html
printf '\nTotal: %s of the statements; each line in .cache/cover.html\n' "$(go tool cover -func=.cache/cover.out | awk 'END { print $NF }')"
exit $status
