#!/bin/sh
# Builds Citus from a folder of its sources and installs it into a PostgreSQL: test/citus/build.sh FOLDER [PG_CONFIG]
#
# Needs a C compiler, make, flex, the server's header files and those of lz4, zstd and OpenSSL (on Debian: postgresql-server-dev-15
# libkrb5-dev liblz4-dev libzstd-dev libssl-dev libpam0g-dev libselinux1-dev libxslt1-dev libreadline-dev). Takes some four minutes.
set -eu
sources=${1:?"usage: test/citus/build.sh FOLDER [PG_CONFIG]: the folder holds the sources of Citus"}
pg_config=${2:-pg_config}
[ -x "$sources/configure" ] || { echo "there are no sources of Citus in $sources: clone the repository of Citus there" >&2; exit 1; }
command -v "$pg_config" >/dev/null || { echo "$pg_config is missing: install the header files of the PostgreSQL server" >&2; exit 1; }
pg_config=$(command -v "$pg_config")

# PostgreSQL 15.20 exports a function that Citus 13.2 defines for itself: the two do not compile together.
compat="$sources/src/include/pg_version_compat.h"
if grep -q '^have_createdb_privilege' "$compat" && grep -q have_createdb_privilege "$("$pg_config" --includedir-server)/commands/dbcommands.h"
then
  sed -i '/^static \(inline \)\{0,1\}bool$/{N;/have_createdb_privilege/{:a;N;/\n}$/!ba;s|.*|#include "commands/dbcommands.h"|}}' "$compat"
fi
cd "$sources"
touch configure # a clone gives the files times of its own: make would want autoconf to write it again
./configure PG_CONFIG="$pg_config" --without-libcurl
make -j2
make install
echo "Citus is installed into $("$pg_config" --pkglibdir)"
