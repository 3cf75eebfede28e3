#!/usr/bin/env bash
# Fuzzes every target of every package for a time each, one after the other.
#
#   scripts/fuzz.sh [time]          such as 10s; 30s without
#   scripts/fuzz.sh time number     so many of the targets, the next ones each day until all have had their turn
#   scripts/fuzz.sh keep            copies what reached new code in earlier runs on this machine into testdata/fuzz
#
# What fails goes into the package's testdata/fuzz, where go test runs it from then on: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly time=${1:-30s}

# folders prints those that have targets, so that no other test binary is built just to list its targets.
folders() { grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r dirname | sort -u; }

# targets prints "package target" for each. go test -list prints a package's targets and then its name.
targets() {
  mapfile -t dirs < <(folders)
  [ ${#dirs[@]} -gt 0 ] || return 0
  go test -list '^Fuzz' "${dirs[@]}" | awk '/^Fuzz/ { found[n++] = $1 } $1 == "ok" { for (i = 0; i < n; i++) print $2, found[i]; n = 0 }'
}

# turn prints so many of the lines that it reads: each day the next ones.
turn() {
  awk -v n="$1" -v day="$(($(date +%s) / 86400))" '{ line[NR - 1] = $0 } END { for (i = 0; i < n && i < NR; i++) print line[(day * n + i) % NR] }'
}

# keep copies the shortest inputs of a target that the fuzzer found worth keeping.
keep() {
  local from to most=12
  from=$(go env GOCACHE)/fuzz/$1/$2
  to=.${1#"$(go list -m)"}/testdata/fuzz/$2
  [ -d "$from" ] || return 0
  mkdir -p "$to"
  find "$from" -type f -size -2k -printf '%s %p\n' | sort -n | head -n "$most" | cut -d' ' -f2- | xargs -r cp -t "$to"
  echo "fuzz: $1 $2: $(find "$to" -type f | wc -l) inputs kept"
}

# show prints a file of a package's, named in its folder.
show() {
  [ -z "$2" ] || { echo "fuzz: $2:" && cat ".${1#"$(go list -m)"}/$2"; }
}

# fuzz_one fuzzes a target, and spends at most a second on making an interesting input shorter: the default, a minute,
# would leave little of the time for finding others. It prints an input that fails, as the file may be lost with the machine.
# When the time ends in the middle of an input, go test now and then calls that a failure, without an input that
# failed: there is nothing to mend then.
fuzz_one() {
  local output
  output=$(mktemp)
  if ! go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 1s "$1" 2>&1 | tee "$output"; then
    if ! grep -q '^    context deadline exceeded$' "$output" || grep -q 'Failing input' "$output"; then
      show "$1" "$(sed -n 's/.*Failing input written to //p' "$output")"
      rm -f "$output"
      return 1
    fi
    echo "fuzz: the time ended in the middle of an input; none has failed"
  fi
  rm -f "$output"
}

list=$(targets)
if [ -z "$list" ]; then
  echo 'fuzz: no target found'
  exit
fi
if [ $# = 2 ]; then
  all=$(wc -l <<<"$list")
  list=$(turn "$2" <<<"$list")
  printf 'fuzz: today %d of %d targets:\n%s\n' "$(wc -l <<<"$list")" "$all" "$list"
fi
failed=()
while read -r package target; do
  if [ "$time" = keep ]; then
    keep "$package" "$target"
    continue
  fi
  echo "fuzz: $package $target for $time"
  fuzz_one "$package" "$target" || failed+=("$package $target")
done <<<"$list"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'fuzz: failed: %s\n' "${failed[@]}"
  exit 1
fi
