#!/usr/bin/env bash
# Looks for what static analysis knows of insecure code (gosec) and, with --vuln, for known vulnerabilities of what is
# linked in (govulncheck, which asks the Go vulnerability database over the network).
#
# Left out, each explained in place or harmless here: G103 (unsafe), G104 (unhandled errors), G115 (integer conversions: parsers
# check ranges first), G204 (only tests and benchmarks start programs), G302 (the socket is for the app's group), G304 (files
# that the operator names), G404 (jitter and samples).
set -euo pipefail
cd "$(dirname "$0")/.."

# Pinned: newer ones need modules that are not kept everywhere. They are no tools of go.mod, whose requirements they would raise.
readonly gosec=github.com/securego/gosec/v2/cmd/gosec@v2.22.0
readonly govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.1.4
readonly left_out=G103,G104,G115,G204,G302,G304,G404

# fetch installs a tool for this checkout. Its modules come over the network, which may fail once.
fetch() {
  GOBIN="$PWD/.cache" go install "$1" || { sleep 10; GOBIN="$PWD/.cache" go install "$1"; }
}

fetch "$gosec"
.cache/gosec -quiet -exclude="$left_out" -exclude-dir=deploy/check ./...
echo 'security: gosec is clean'
if [ "${1:-}" = --vuln ]; then
  fetch "$govulncheck"
  .cache/govulncheck ./...
fi
