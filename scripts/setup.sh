#!/usr/bin/env bash
# Gets what the tests and the demo need besides Go and a C compiler: redis-server, PostgreSQL with PgBouncer and MariaDB, Java 17 or newer, the jars of a Kafka broker and of its MirrorMaker,
# Chromium, in which the operator's page is tested, the generator of a Python client, with which the OpenAPI document is, and
# clients of Redis and a Valkey, with which the RESP listener is, and h2load, with which rankcache-lab measures.
#
#   scripts/setup.sh                       all of it
#   scripts/setup.sh redis|h2load|sql|kafka|chromium|python-client|clients  one of them
#   scripts/setup.sh musl                  what a static build takes besides (scripts/static.sh)
#   scripts/setup.sh arm64                 a C compiler for arm64 (scripts/platforms.sh)
#   scripts/setup.sh zig                   one for arm64 with musl (scripts/release.sh)
#
# What is there already is left alone, so a second run takes no time. What can't be had is reported and left out, and the tests then do without it as far as
# they can; with RANKCACHE_REQUIRE_REAL=1 it is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly cache=.cache/kafka
readonly pom=scripts/kafka/pom.xml
readonly mirror_cache=.cache/kafka-mirror mirror_pom=scripts/kafka/mirror/pom.xml
readonly java_wanted=17
missing=()

say() { printf 'setup: %s\n' "$*"; }

# lacks WHAT WHY: notes that something could not be had, and what to check.
lacks() {
  missing+=("$1")
  say "NO $1: $2" >&2
}

have() { command -v "$1" >/dev/null 2>&1; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@"; }

# apt_install PACKAGE...: installs, with a fresh package list only when the one at hand does not do.
apt_install() {
  have apt-get || return 1
  [ "$(id -u)" = 0 ] || have sudo || return 1
  say "installing $* with apt-get"
  apt install --no-install-recommends "$@" >/dev/null 2>&1 && return
  say "fetching the package lists with apt-get update"
  apt update && apt install --no-install-recommends "$@" >/dev/null
}

# Debian's package may start a service on port 6379. Nothing here uses it: the tests start servers of their own on free ports.
setup_redis() {
  have redis-server || apt_install redis-server || true
  have redis-server || lacks redis-server 'install it by hand or check that apt-get reaches its packages'
}

setup_h2load() {
  have h2load || apt_install nghttp2-client || true
  have h2load || lacks h2load 'install the package nghttp2-client by hand or check that apt-get reaches its packages'
}

# The packages would start services of their own, which nothing here uses: the tests start theirs on free ports. A policy that
# forbids it stands while they are installed, unless the machine has one.
setup_sql() {
  local policy=/usr/sbin/policy-rc.d made=
  if { ! have_postgres || ! have_mariadb || ! have_pgbouncer; } && have apt-get; then
    [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null && as_root chmod 755 $policy && made=1; }
    have_postgres || apt_install postgresql || true
    have_mariadb || apt_install mariadb-server || true
    have_pgbouncer || apt_install pgbouncer || true
    [ -z "$made" ] || as_root rm -f $policy
  fi
  have_postgres || lacks PostgreSQL 'install postgresql by hand or check that apt-get reaches its packages'
  have_mariadb || lacks MariaDB 'install mariadb-server by hand or check that apt-get reaches its packages'
  have_pgbouncer || lacks PgBouncer 'install pgbouncer by hand or check that apt-get reaches its packages'
}

have_pgbouncer() { have pgbouncer || [ -x /usr/sbin/pgbouncer ]; }

have_postgres() { have postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }

have_mariadb() { { have mariadbd || [ -x /usr/sbin/mariadbd ]; } && have mariadb-install-db; }

setup_musl() {
  have musl-gcc || apt_install musl-tools || true
  have musl-gcc || lacks musl-gcc 'install the package musl-tools by hand or check that apt-get reaches its packages'
}

# The library's headers are a recommendation of the compiler's package.
have_arm64() { have aarch64-linux-gnu-gcc && echo '#include <stdlib.h>' | aarch64-linux-gnu-gcc -E - >/dev/null 2>&1; }

setup_arm64() {
  have_arm64 || apt_install gcc-aarch64-linux-gnu libc6-dev-arm64-cross || true
  have_arm64 || lacks 'a C compiler for arm64' 'install gcc-aarch64-linux-gnu and libc6-dev-arm64-cross by hand or check that apt-get reaches its packages'
}

setup_zig() {
  local wanted=scripts/zig/requirements.txt to=.cache/zig
  cmp -s $wanted $to/requirements.txt && return
  say "fetching Zig's C compiler into $to, 90 MB"
  if { python3 -m venv --clear $to >/dev/null 2>&1 || { apt_install python3-venv && python3 -m venv --clear $to; }; } &&
    $to/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $wanted; then
    cp $wanted $to
  else
    lacks "Zig's C compiler" "python3 with venv, and pip fetches what $wanted names (see above)"
  fi
}

# java_version prints the major version of the Java in PATH, 0 when there is none.
java_version() {
  have java || { echo 0; return; }
  java -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p'
}

setup_java() {
  [ "$(java_version)" -ge $java_wanted ] && return
  apt_install openjdk-$java_wanted-jre-headless || apt_install default-jre-headless || true
  [ "$(java_version)" -ge $java_wanted ] ||
    lacks "Java $java_wanted" "found version $(java_version) in PATH (0: none); install a newer one or put it first in PATH"
}

# Jars are complete when the pom that named them lies beside them: it is put there last.
setup_jars() {
  if [ -n "${RANKCACHE_TEST_KAFKA_LIBS:-}" ]; then
    say "using Kafka's jars in $RANKCACHE_TEST_KAFKA_LIBS (RANKCACHE_TEST_KAFKA_LIBS)"
    return
  fi
  cmp -s $pom $cache/pom.xml && cmp -s $mirror_pom $mirror_cache/pom.xml && return
  have mvn || apt_install maven || true
  if ! have mvn; then
    lacks "Kafka's jars" 'Maven fetches them and is not here: install it by hand or check that apt-get reaches its packages'
    return
  fi
  { fetch_jars $pom $cache && fetch_jars $mirror_pom $mirror_cache $cache/libs; } ||
    lacks "Kafka's jars" "Maven could not fetch what $pom and $mirror_pom name (see above): check that it reaches its repository"
}

# fetch_jars POM FOLDER [BESIDE] copies the jars of a pom, without those that are in another folder, unless they are there. They are put into a folder of their own
# first, so that a run that is broken off, or two at once, leave no half of them.
fetch_jars() {
  cmp -s "$1" "$2/pom.xml" && return
  say "fetching the jars of $1 with Maven into $2/libs, about a minute"
  mkdir -p "$2"
  local new jar
  new=$(mktemp -d "$PWD/$2/new.XXXXXX")
  if ! mvn -B -q -Dstyle.color=never -f "$1" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$new"; then
    rm -rf "$new"
    return 1
  fi
  for jar in "${3:-/none}"/*.jar; do
    rm -f "$new/$(basename "$jar")"
  done
  chmod 755 "$new"
  rm -rf "$2/libs"
  mv -T "$new" "$2/libs"
  cp "$1" "$2/pom.xml"
}

have_chromium() { have chromium || have chromium-browser || have google-chrome; }

setup_chromium() {
  have_chromium || apt_install chromium || true
  have_chromium || lacks Chromium 'install it by hand or check that apt-get reaches its packages'
}

# The documented commands are run as they are written, and call it.
setup_curl() {
  have curl || apt_install curl || true
  have curl || lacks curl 'install it by hand or check that apt-get reaches its packages'
}

# The folder has the requirements that it was made from, put there last, and takes its place when it is whole, as Kafka's jars do.
setup_python_client() {
  local wanted=scripts/python-client/requirements.txt to=.cache/python-client new
  cmp -s $wanted $to/requirements.txt && return
  say "fetching the generator of Python clients into $to"
  mkdir -p .cache
  new=$(mktemp -d "$PWD/$to.XXXXXX")
  if { python3 -m venv "$new" >/dev/null 2>&1 || { apt_install python3-venv && python3 -m venv --clear "$new"; }; } &&
    "$new/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r $wanted; then
    chmod 755 "$new" && cp $wanted "$new" && rm -rf $to && mv -T "$new" $to
  else
    rm -rf "$new"
    lacks 'generator of Python clients' "it takes Python 3.11 or newer with venv, and pip fetches what $wanted names (see above)"
  fi
}

# The folder is made and replaced as that of the Python client.
setup_clients() {
  local to=.cache/clients new
  cat scripts/clients/* | cmp -s - $to/made-from && return
  have javac || apt_install openjdk-$java_wanted-jdk-headless || true
  have npm || apt_install npm || true
  say "fetching clients of Redis and valkey-server into $to"
  mkdir -p .cache
  new=$(mktemp -d "$PWD/$to.XXXXXX")
  if fetch_clients "$new"; then
    cat scripts/clients/* >"$new/made-from"
    chmod 755 "$new" && rm -rf $to && mv -T "$new" $to
  else
    rm -rf "$new"
    lacks 'clients of Redis' 'python3 with venv, npm and Maven fetch what scripts/clients names (see above)'
  fi
}

fetch_clients() {
  cp scripts/clients/package*.json "$1" &&
    npm ci --prefix "$1" --silent --ignore-scripts --no-audit --no-fund &&
    python3 -m venv "$1/python" &&
    "$1/python/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r scripts/clients/requirements.txt &&
    mvn -B -q -Dstyle.color=never -f scripts/clients/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$1/libs"
}

case "${1:-all}" in
  redis) setup_redis ;;
  h2load) setup_h2load ;;
  sql) setup_sql ;;
  kafka) setup_java; setup_jars ;;
  musl) setup_musl ;;
  arm64) setup_arm64 ;;
  zig) setup_zig ;;
  chromium) setup_chromium ;;
  python-client) setup_python_client ;;
  clients) setup_clients ;;
  all) setup_redis; setup_h2load; setup_sql; setup_java; setup_jars; setup_chromium; setup_curl; setup_python_client; setup_clients ;;
  *) say "unknown part '$1': redis, h2load, sql, kafka, chromium, python-client, clients, musl, arm64 or zig" >&2; exit 2 ;;
esac

if [ ${#missing[@]} -gt 0 ]; then
  [ "${RANKCACHE_REQUIRE_REAL:-}" != 1 ] || { say 'RANKCACHE_REQUIRE_REAL=1 asks for all of it' >&2; exit 1; }
  say 'going on without' >&2
fi
