#!/bin/sh
# Installs servers that others wrote into test/servers/installed: versitygw (S3, by Go). The tests use what they find there, and
# a stand-in for what is missing.
set -u
cd "$(dirname "$0")"
mkdir -p installed
GOBIN="$PWD/installed" go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 || echo 'versitygw could not be installed' >&2
