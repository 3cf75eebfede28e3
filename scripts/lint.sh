#!/usr/bin/env bash
# Checks the sources without running them: gofmt, go vet, staticcheck, and that each -run of the scripts names a test. All
# are run, so that one run names everything.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

status=0

unformatted=$(gofmt -l .) || status=1
if [ -n "$unformatted" ]; then
  printf 'lint: not formatted, run "make fmt":\n%s\n' "$unformatted"
  status=1
fi
scripts/runs.sh || status=1
go vet ./... || status=1
go vet -tags kafkapoll ./internal/kafka || status=1
go tool staticcheck ./... || status=1

# A module of its own, which does not have the tool.
staticcheck=$(go tool -n staticcheck) || status=1
(cd deploy/check && go vet ./... && "$staticcheck" ./...) || status=1

[ $status != 0 ] || echo 'lint: clean'
exit $status
