#!/usr/bin/env bash
# Builds rankcache as one static file, as deploy/Dockerfile does, and proves that it works.
#
#   scripts/static.sh build FILE [VERSION]   build it
#   scripts/static.sh start                  build it and run it in an empty root
#   scripts/static.sh check                  this, and run it end to end on a real Redis and a real Kafka
#
# It takes musl-gcc, of Debian's package musl-tools; start and check fetch it if need be.
set -euo pipefail
cd "$(dirname "$0")/.."

# The musl tag picks librdkafka's musl library; the other two let Go look up names and users itself.
build() {
  CC=${CC:-musl-gcc} CGO_ENABLED=1 go build -trimpath -tags musl,netgo,osusergo \
    -ldflags "-s -w -linkmode external -extldflags -static -X rankcache/internal/cli.Version=${2:-unknown}" -o "$1" ./cmd/rankcache
}

# in_empty_root runs the file with nothing else around it and as nobody, as the image does.
in_empty_root() {
  local root
  root=$(mktemp -d)
  cp "$1" "$root/rankcache"
  chmod 755 "$root"
  if [ "$(id -u)" = 0 ]; then
    chroot --userspec=65532:65532 "$root" /rankcache "${@:2}" || { rm -r "$root"; return 1; }
  else
    unshare --map-root-user chroot "$root" /rankcache "${@:2}" || { rm -r "$root"; return 1; }
  fi
  rm -r "$root"
}

readonly file=$PWD/.cache/static/rankcache

start() {
  scripts/setup.sh musl
  mkdir -p "$(dirname "$file")"
  build "$file" checked
  in_empty_root "$file" version
  in_empty_root "$file" config >/dev/null
}

check() {
  start
  RANKCACHE_TEST_BINARY=$file scripts/test.sh -count=1 -run 'TestServeAnswersByTier|TestProbesInEveryState' ./internal/app
}

case "${1:-}" in
  build) build "${@:2}" ;;
  start | check) "$1" ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
