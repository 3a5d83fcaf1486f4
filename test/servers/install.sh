#!/bin/sh
# Installs third-party programs into test/servers/installed: versitygw (S3, by Go), moto (AWS KMS, from PyPI), promtool,
# Caddy and pgBackRest (from Debian). The tests use what they find there, and print what is missing; stand-ins are tested everywhere.
set -u
cd "$(dirname "$0")"
mkdir -p installed
GOBIN="$PWD/installed" go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 || echo 'versitygw could not be installed' >&2
python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --upgrade --target installed/python \
  'moto[server]==5.2.3' || echo 'moto could not be installed' >&2
(cd installed && apt-get download -qq prometheus && dpkg -x prometheus_*.deb prometheus && rm prometheus_*.deb) ||
  echo 'promtool could not be installed' >&2
(cd installed && apt-get download -qq caddy && dpkg -x caddy_*.deb caddy && rm caddy_*.deb) ||
  echo 'Caddy could not be installed' >&2
(cd installed && apt-get download -qq pgbackrest && dpkg -x pgbackrest_*.deb pgbackrest && rm pgbackrest_*.deb) ||
  echo 'pgBackRest could not be installed' >&2
