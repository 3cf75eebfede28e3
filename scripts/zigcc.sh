#!/bin/sh
# A C compiler that makes programs for linux/arm64 with musl, from Zig's, which scripts/setup.sh fetches.
exec "$(dirname "$0")/../.cache/zig/bin/python" -m ziglang cc -target aarch64-linux-musl "$@"
