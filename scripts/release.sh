#!/usr/bin/env bash
# Builds what a release consists of, from the commit that is checked out.
#
#   scripts/release.sh build DIR [VERSION]   an archive for linux/amd64 and one for linux/arm64, SBOMs, checksums
#   scripts/release.sh check                 build for amd64 from two clones and compare; check the workflow's syntax
#
# An archive has the static program, README, CHANGELOG and the licences of all that is linked. The same commit and tools
# give the same bytes: check compares them. .github/workflows/release.yml signs them and makes the image.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOFLAGS="${GOFLAGS:-} -buildvcs=true" # the commit stands in the program
readonly actionlint=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# compile ARCH FILE VERSION: arm64 takes Zig's C compiler, as Debian has none for musl.
compile() {
  if [ "$1" = amd64 ]; then
    CC=musl-gcc scripts/static.sh build "$2" "$3"
  else
    CC=$PWD/scripts/zigcc.sh GOARCH=arm64 scripts/static.sh build "$2" "$3"
  fi
}

# licences FILE: each linked module's, as the modules bring them; librdkafka and what is in it have one of their own.
licences() {
  go version -m "$1" | awk '$1 == "dep" || $1 == "=>" { print $2 "@" $3 }' | while read -r module; do
    local dir
    dir=$(go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    printf '\n=== %s\n' "$module"
    find "$dir" -maxdepth 1 -type f -iregex '.*/\(u?n?licen[sc]e\|copying\|notice\)[^/]*' | sort | xargs -r -d '\n' cat
    case $module in *confluent-kafka-go*) cat "$dir"/kafka/librdkafka_vendor/LICENSES.txt ;; esac
  done
}

# archive ARCH DIR VERSION
archive() {
  local name=rankcache_$3_linux_$1 to
  to=$2/$name
  mkdir -p "$to"
  compile "$1" "$to/rankcache" "$3"
  licences "$to/rankcache" >"$to/LICENCES-OF-LIBRARIES"
  cp README.md CHANGELOG.md "$to"
  .cache/sbom "$to/rankcache" "$3" "$(date -u -d "@$commit_time" +%FT%TZ)" >"$2/$name.cdx.json"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$commit_time" -C "$2" -c "$name" | gzip -n9 >"$to.tar.gz"
  rm -r "$to"
}

# build DIR VERSION ARCH...
build() {
  local dir=$1 version=$2 commit_time
  shift 2
  commit_time=$(git log -1 --format=%ct)
  (cd scripts/sbom && go build -o ../../.cache/sbom .)
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  for arch; do archive "$arch" "$dir" "$version"; done
  (cd "$dir" && sha256sum rankcache_* >SHA256SUMS)
}

check() {
  local work
  work=$(mktemp -d)
  for clone in one another; do
    git clone -q . "$work/$clone"
    mkdir -p .cache "$work/$clone/.cache"
    (cd "$work/$clone" && scripts/release.sh only amd64 "$work/$clone-dist" checked)
  done
  diff "$work/one-dist/SHA256SUMS" "$work/another-dist/SHA256SUMS"
  cat "$work/one-dist/SHA256SUMS"
  grep -q '"name": "github.com/confluentinc/confluent-kafka-go/v2"' "$work/one-dist/rankcache_checked_linux_amd64.cdx.json"
  tar -xzOf "$work/one-dist/rankcache_checked_linux_amd64.tar.gz" rankcache_checked_linux_amd64/LICENCES-OF-LIBRARIES |
    awk '/^=== / { missing = missing (name && !lines ? " " name : ""); name = $2; lines = 0; next } NF { lines++ }
      END { if (missing) { print "release: no licence of" missing; exit 1 } }'
  rm -rf "$work"
  GOBIN="$PWD/.cache" go install "$actionlint"
  .cache/actionlint -shellcheck= .github/workflows/*.yml
  echo 'release: two clones give the same archive and SBOM'
}

scripts/setup.sh musl
case "${1:-}" in
  build) scripts/setup.sh zig && build "$2" "${3:-$(git describe --tags --always --dirty)}" amd64 arm64 ;;
  only) build "$3" "$4" "$2" ;;
  check) check ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
