#!/usr/bin/env bash
# Runs go test with the race detector against one redis-server and one Kafka broker that all packages share.
#
#   scripts/test.sh                            all packages
#   scripts/test.sh -run TestGate ./replay     what go test takes
#
# RANKCACHE_FULL=1 runs the tests in full size; RANKCACHE_REQUIRE_REAL=1 fails where a real server is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly packages=$# timeout=${RANKCACHE_TEST_TIMEOUT:-15m}
[ $# -gt 0 ] || set -- ./...

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

check_run "$@"
scripts/setup.sh

# What the race detector makes meaningless (it empties sync.Pools) or far too slow has a run of its own, and so have
# connections, which are read and written in another way without it.
if [ "$packages" = 0 ]; then
  go test -count=1 -run Memory ./profile
  go test -count=1 -run HitRatio ./internal/lab/measure
  go test -count=1 ./sidecar/...
  # A module of its own: only it needs Prometheus and kustomize. Its tests read files outside of it, which
  # the cache of results does not look at.
  (cd deploy/check && go test -count=1 ./...)
fi

# Built and then run, because "go run" passes on neither signals nor the exit code.
go build -o .cache/withservers ./internal/testkit/cmd/withservers
if [ "$packages" != 0 ]; then
  exec .cache/withservers go test -race -timeout "$timeout" "$@"
fi

# Among a thousand tests on real servers one may fail because the machine was busy. What fails is run once more, alone,
# and named at the end; a data race or more than a few failures end the run.
GOBIN="$PWD/.cache" go install gotest.tools/gotestsum@v1.13.0
status=0

# run runs the tests of a name: gotestsum's arguments, -- and go test's.
run() {
  local name=$1
  shift
  rm -f ".cache/again-$name.txt"
  .cache/withservers .cache/gotestsum --format pkgname --rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-abort-on-data-race \
    --rerun-fails-report=".cache/again-$name.txt" --jsonfile=".cache/tests-$name.json" "$@" -timeout "$timeout" || status=$?
  printf '\nThe slowest tests:\n'
  .cache/gotestsum tool slowest --num 10 --jsonfile ".cache/tests-$name.json" || true # the run has listed what failed
  if [ -s ".cache/again-$name.txt" ]; then
    printf '\n*** These tests failed at first, look at them:\n'
    cat ".cache/again-$name.txt"
  fi
}

# In full size these take minutes and all of the machine, so that nothing else runs beside them. Of these a failed subtest
# alone is run again, of the others its whole test: their names may have signs that a pattern takes for its own.
readonly long='^(TestFaults|TestMemoryStaysUnderTheLimit|TestNothingIsLostWhenWritersAreKilled|TestEndedBoardsLeaveNothing|TestSwitch|TestRollout|TestLedgerIsKilled|TestFailoverLosesNothing|TestFailoverOfSetsAndDeletes)$'
if [ -z "${RANKCACHE_FULL:-}" ]; then
  run all --rerun-fails-run-root-test --packages='./...' -- -race
else
  run all --rerun-fails-run-root-test --packages='./...' -- -race -skip "$long"
  # All histories of the model, which take five times as long with -race. (runs.sh wants the package behind the pattern.)
  run model --packages='./replay' -- -count=1 -run '^TestModel$' # ./replay
  # Likewise the million changes of a board with ties.
  run ties --packages='./internal/writer' -- -count=1 -run '^TestTiesEqualOracle$' # ./internal/writer
  # Likewise the rebuild of a board of a million orders, and the comparison of a million with the books.
  run rebuild --packages='./ledger/rebuild' -- -count=1 -run '^TestRebuildInFullSize$' # ./ledger/rebuild
  run reconcile --packages='./ledger/reconcile' -- -count=1 -run '^TestEveryPlantedDifferenceIsFound$' # ./ledger/reconcile
  run long --packages='./internal/app ./internal/lab/faults' -- -race -p 1 -run "$long"
fi
exit $status
