#!/usr/bin/env bash
# Fails where an alternative of a -run pattern matches no test: go test would pass without having run anything.
#
#   scripts/runs.sh                      every -run in the scripts, the Makefile and .ci/run
#   scripts/runs.sh PATTERN PACKAGE...   one, as go test is given it
#
# It reads the names from the sources, which takes no time; go test -list would have to build the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

# names prints what the packages (./a, ./a/..., none for .) have that -run can choose.
names() {
  local package
  for package in "${@:-.}"; do
    if [[ $package == *... ]]; then
      find "${package%...}" -name '*_test.go' -exec cat {} +
    else
      find "$package" -maxdepth 1 -name '*_test.go' -exec cat {} +
    fi
  done | sed -nE 's/^func ((Test|Fuzz|Example)[A-Za-z0-9_]*)\(.*/\1/p'
}

# alternatives prints those of a pattern, each without its subtests.
alternatives() {
  case $1 in
    *'('*) printf '%s\n' "${1%%/*}" ;; # alternatives in groups are taken as one
    *) tr '|' '\n' <<<"$1" | sed 's|/.*||' ;;
  esac
}

check() {
  local pattern=$1 found alternative status=0
  shift
  [ "$pattern" != '^$' ] || return 0 # benchmarks and fuzzing alone
  found=$(names "$@")
  while read -r alternative; do
    grep -qE -- "$alternative" <<<"$found" && continue
    echo "runs: -run '$alternative' matches no test in ${*:-.}"
    status=1
  done < <(alternatives "$pattern")
  return $status
}

if [ $# -gt 0 ]; then
  check "$@"
  exit
fi
status=0
while IFS=: read -r file line; do
  line=${line//\$\$/\$} # the Makefile's $
  read -r pattern rest <<<"$(sed -E "s/.*-run[ =]('([^']*)'|([^' ]+))(.*)/\2\3 \4/" <<<"$line")"
  read -ra packages <<<"$(grep -oE '(^| )\./[^ ;)]*' <<<"$rest" | xargs)"
  check "$pattern" "${packages[@]}" || { echo "runs: in $file: $line"; status=1; }
done < <(grep -HE -- "-run[ =]['A-Z^]" Makefile .ci/run scripts/*.sh | grep -v '^scripts/runs.sh')
exit $status
