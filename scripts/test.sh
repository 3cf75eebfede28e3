#!/usr/bin/env bash
# Runs go test with the race detector against one redis-server, Kafka broker and PostgreSQL that all packages share.
#
#   scripts/test.sh                            all packages
#   scripts/test.sh -run TestGate ./replay     what go test takes
#
# RANKCACHE_FULL=1 runs all tests in full size, as .ci/run does; else those that take minutes are left out, and listed.
# RANKCACHE_REQUIRE_REAL=1 fails where a real server is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly timeout=${RANKCACHE_TEST_TIMEOUT:-15m} full=${RANKCACHE_FULL:-}

# check_run refuses a -run among go test's arguments that matches nothing.
check_run() {
  local pattern='' folders=()
  while [ $# -gt 0 ]; do
    case $1 in
      -run) pattern=${2:-} && shift ;;
      -run=*) pattern=${1#-run=} ;;
      ./*) folders+=("$1") ;;
    esac
    shift
  done
  [ -z "$pattern" ] || scripts/runs.sh "$pattern" "${folders[@]}"
}

# The race runtime sleeps for a second at the end of each process, to let other threads report: sixty test binaries, and each command they start.
export GORACE="atexit_sleep_ms=0 ${GORACE:-}"

if [ -z "${RANKCACHE_TEST_SERVERS:-}" ]; then # set for the script itself, once the servers are there
  check_run "$@"
  scripts/setup.sh
  # Built and then run, because "go run" passes on neither signals nor the exit code.
  go build -o .cache/withservers ./internal/testkit/cmd/withservers
  RANKCACHE_TEST_SERVERS=1 exec .cache/withservers scripts/test.sh "$@"
fi
[ $# = 0 ] || exec go test -race -vet=off -timeout "$timeout" "$@" # lint vets

# What the race detector makes meaningless (it empties sync.Pools) or far too slow runs without it: models have neither goroutines nor locks.
unraced='TestModel|TestModelNeedsEachRule|TestModelRegion|TestHitRatio|TestMemoryStaysWithinBudget'
[ -z "$full" ] || unraced+='|TestTiesEqualOracle|TestRebuildInFullSize|TestLostBoardInFullSize|TestEveryPlantedDifferenceIsFound'
# In full size these take all of the machine, so that nothing runs beside them.
alone='TestFaults|TestHiddenAndData|TestSecondRegion|TestDurable|TestRolling|TestRollingSwitch|TestMemoryStaysUnderTheLimit|TestNothingIsLostWhenWritersAreKilled'
[ -n "$full" ] || alone=''
# What has to do with measuring and with the servers of tests is tested in full size alone.
readonly tools='/internal/(lab/(bench|load|measure|servers)|testkit)(/|$)'
# What is raced in full size alone: pure packages, those that ask a database and wait, and those whose tests start the command.
readonly plain='^rankcache(/class|/wire|/rooms|/compat|/controller|/deploy/.*|/examples/.*|/internal/(app|doctor|lab(/.*)?|operate|plan|run)|/ledger/.*|/operator|/sidecar/encode)?$'
scripts/runs.sh "$unraced|$alone" ./...

# Those that wait the longest begin first, so that nothing runs alone at the end.
readonly first='./writer ./replay ./sidecar/httpapi ./internal/app ./internal/lab/faults'

# having prints the packages that have one of the tests.
having() { grep -rlE --include='*_test.go' "^func ($1)\(" . | xargs dirname | sort -u | xargs; }

# Among a thousand tests on real servers one may fail because the machine was busy. What fails is run once more, alone,
# and counted in .ci/flaky if it passes then; a data race or more than a few failures end the run.
GOBIN="$PWD/.cache" go install gotest.tools/gotestsum@v1.13.0
rm -f .cache/again-*.txt .cache/tests-*.json
status=0

# run NAME PACKAGES ARGUMENT... runs tests with gotestsum; the arguments are go test's.
run() {
  .cache/gotestsum --format pkgname --packages="$2" --rerun-fails=1 --rerun-fails-max-failures=20 \
    --rerun-fails-abort-on-data-race --rerun-fails-report=".cache/again-$1.txt" --jsonfile=".cache/tests-$1.json" \
    -- -vet=off -timeout "$timeout" -parallel 4 "${@:3}" || status=1
}

start=$SECONDS
if [ -z "$full" ]; then
  packages=$(go list $first ./... | grep -vE "$tools")
  go build -race ./...
  go build -o .cache/rankcache ./cmd/rankcache
  readonly built=$((SECONDS - start))
  run race "$(grep -vE "$plain" <<<"$packages" | xargs)" -race -p 3 -skip "^($unraced)\$"
  RANKCACHE_TEST_BINARY=$PWD/.cache/rankcache run plain "$(grep -E "$plain" <<<"$packages" | xargs)" -p 3 -skip "^($unraced)\$"
else
  go build -race ./...
  readonly built=$((SECONDS - start))
  run race "$first ./..." -race -p 3 -skip "^($unraced|$alone)\$" # tests wait for servers more than they compute
  run alone "$(having "$alone" | sed 's| *./internal/lab/faults||')" -race -p 1 -run "^($alone)\$"
  run faults ./internal/lab/faults -run "^($alone)\$" # starts the command as it is built: only its own load would be raced, and takes half the machine
  # Connections are read and written in another way without the race detector.
  run sidecar ./sidecar/... -p 3
  # A module of its own: only it needs Prometheus and kustomize. Its tests read files outside of it, which the cache of
  # results does not look at.
  (cd deploy/check && go test -count=1 ./...) || status=1
fi
run unraced "$(having "$unraced")" -run "^($unraced)\$"

printf '\nBuilding the packages took %d s, the rest %d s. The slowest packages:\n' "$built" $((SECONDS - start - built))
cat .cache/tests-*.json | sed -nE '/"Test":/d; s/.*"Action":"(pass|fail)","Package":"([^"]*)","Elapsed":([0-9.]+).*/\3 \2/p' | sort -rn | head -n 10
printf '\nThe slowest tests:\n'
cat .cache/tests-*.json | .cache/gotestsum tool slowest --num 20

{ cat .cache/again-*.txt 2>/dev/null || true; } | sed -nE 's/^(.*): ([0-9]+) runs, ([0-9]+) failures$/\2 \3 \1/p' |
  awk -v today="$(date +%F)" '$2 < $1 { print today, $3 }' >>.ci/flaky
if [ -s .ci/flaky ]; then
  printf '\n*** These tests failed at first and passed when they were run again, so many times. Commit .ci/flaky; a test that is mended leaves it.\n'
  awk '{ n[$2]++; last[$2] = $1 } END { for (t in n) { print n[t], "times, last on", last[t] ":", t; bad += n[t] > 2 } exit bad > 0 }' .ci/flaky ||
    { echo '*** One did so three times: it is mended before anything else lands.'; status=1; }
fi
exit $status
