#!/usr/bin/env bash
# Fuzzes every target of every package for a time each, one after the other.
#
#   scripts/fuzz.sh [time]     such as 10s; 30s without
#
# What it finds goes into the package's testdata/fuzz, where go test runs it from then on: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly time=${1:-30s}

# folders prints those that have targets, so that no other test binary is built just to be asked.
folders() { grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r dirname | sort -u; }

# targets prints "package target" for each. go test -list prints a package's targets and then its name.
targets() {
  mapfile -t dirs < <(folders)
  [ ${#dirs[@]} -gt 0 ] || return 0
  go test -list '^Fuzz' "${dirs[@]}" | awk '/^Fuzz/ { found[n++] = $1 } $1 == "ok" { for (i = 0; i < n; i++) print $2, found[i]; n = 0 }'
}

list=$(targets)
if [ -z "$list" ]; then
  echo 'fuzz: no target found'
  exit
fi
while read -r package target; do
  echo "fuzz: $package $target for $time"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
done <<<"$list"
