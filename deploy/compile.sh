#!/bin/sh
# Compiles Scrip's source once, for the account of the service, so that no start does it again. Run it as root
# after each installation or upgrade. An account reads only a compile cache of its own, and must not be able to
# write what it runs: the cache is made by the account, and then given to root.
set -eu
account=${1:-scrip}
cd "$(dirname "$0")/.."
cache=node_modules/.cache/scrip
install -d -o "$account" "$cache"
setpriv --reuid="$account" --regid="$(id -g "$account")" --clear-groups --no-new-privs \
  env HOME=/ NODE_COMPILE_CACHE="$PWD/$cache" bin/scrip.cjs completion bash > /dev/null
chown -R root:root "$cache"
chmod -R go-w,a+rX "$cache"
