#!/usr/bin/env bash
# Compiles for the platforms besides this one: linux/arm64 whole, with Debian's cross compiler and the librdkafka for arm64
# that the Kafka client brings; darwin/arm64 without the packages that link librdkafka, as that takes Apple's compiler.
# Nothing is run.
set -euo pipefail
cd "$(dirname "$0")/.."

# portable prints the packages that need no C.
portable() {
  go list -deps -f '{{if and .Module .Module.Main}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... |
    awk '!/confluent-kafka-go/ { print $1 }'
}

scripts/setup.sh arm64
CC=aarch64-linux-gnu-gcc CGO_ENABLED=1 GOOS=linux GOARCH=arm64 go build ./...
echo 'platforms: linux/arm64 compiles'

mapfile -t packages < <(portable)
[ ${#packages[@]} -gt 10 ] || { echo "platforms: only ${#packages[@]} packages without C found: ${packages[*]}"; exit 1; }
CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build "${packages[@]}"
echo "platforms: darwin/arm64 compiles: ${#packages[@]} of $(go list ./... | wc -l) packages; NOT CHECKED, as they link librdkafka:"
comm -23 <(go list ./... | sort) <(printf '%s\n' "${packages[@]}" | sort) | sed 's/^/platforms:   /'
