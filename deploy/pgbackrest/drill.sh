#!/bin/sh
# Tries docs/how-to/back-up.md on a PostgreSQL of one's own with Debian's pgBackRest: load, backup, more load, kill -9 and delete,
# restore, reconcile. Run it as root on a machine with Debian's packages; it works in a folder of its own and removes it.
#
#   apt-get install postgresql pgbackrest && deploy/pgbackrest/drill.sh
set -eu
cd "$(dirname "$0")/../.."
command -v pgbackrest >/dev/null || { echo 'pgbackrest is missing: apt-get install pgbackrest' >&2; exit 1; }
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
folder=$(mktemp -d /tmp/scrip-pgbackrest-XXXXXX)
port=$((20000 + $$ % 10000))
data="$folder/data"
node=node_modules/.bin/node
serve=
as_postgres() { (cd "$folder" && setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"); }
backrest() { as_postgres pgbackrest --config="$folder/pgbackrest.conf" --stanza=scrip --log-level-console=warn "$@"; }
cleanup() {
  [ -z "$serve" ] || kill "$serve" 2>/dev/null || true
  as_postgres "$programs/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true
  rm -rf "$folder"
}
trap cleanup EXIT INT TERM

echo '1. a server with an archived log'
mkdir "$folder/repository" "$folder/log" "$folder/spool"
chown -R postgres "$folder"
as_postgres "$programs/initdb" -D "$data" --data-checksums -A trust >/dev/null
sed "s|@FOLDER@|$folder|g; s|@PORT@|$port|g" deploy/pgbackrest/pgbackrest.conf >"$folder/pgbackrest.conf"
cat >>"$data/postgresql.conf" <<END
port = $port
listen_addresses = '127.0.0.1'
unix_socket_directories = '$folder'
archive_mode = on
archive_command = 'pgbackrest --config=$folder/pgbackrest.conf --stanza=scrip archive-push %p'
archive_timeout = 60
END
as_postgres "$programs/pg_ctl" -D "$data" -l "$folder/postgres.log" -w start >/dev/null
as_postgres "$programs/createdb" -h "$folder" -p "$port" scrip
backrest stanza-create
backrest check

echo '2. load, a backup beside it, more load'
export SCRIP_DATABASE_URL="postgres://postgres@127.0.0.1:$port/scrip" SCRIP_DATA_DIR="$folder/keys" SCRIP_LOG_LEVEL=error
scrip() { "$node" bin/scrip.cjs "$@"; }
scrip migrate >/dev/null
scrip merchant create --name Kiosk --float 1000 --json >/dev/null
top_up() { scrip float top-up --merchant 1 --amount 1 --reference "$1" >/dev/null; }
top_up before-1
(for number in 1 2 3 4 5; do top_up "during-$number"; done) &
load=$!
backrest backup --type=full
wait "$load"
top_up after-1
segment=$(as_postgres "$programs/psql" -qAt -h "$folder" -p "$port" scrip -c 'select pg_walfile_name(pg_switch_wal())')
for _ in $(seq 600); do
  [ "$(as_postgres "$programs/psql" -qAt -h "$folder" -p "$port" scrip -c \
    "select coalesce(last_archived_wal, '') >= '$segment' from pg_stat_archiver")" = t ] && break
  sleep 0.1
done
top_up lost-1

echo '3. kill -9, and the data is gone'
kill -9 "$(head -1 "$data/postmaster.pid")"
while as_postgres "$programs/pg_isready" -q -h "$folder" -p "$port"; do sleep 0.1; done
rm -rf "$data"

echo '4. restore, and reconcile before it serves'
mkdir -m 700 "$data"
chown postgres "$data"
backrest restore
as_postgres "$programs/pg_ctl" -D "$data" -l "$folder/postgres.log" -w -t 120 start >/dev/null
until [ "$(as_postgres "$programs/psql" -qAt -h "$folder" -p "$port" scrip -c 'select pg_is_in_recovery()')" = f ]; do sleep 0.2; done
scrip reconcile
balance=$(scrip float show --merchant 1 --json | sed -n 's/.*"balance": \([0-9]*\).*/\1/p')
echo "the float is $balance: 1000, 7 top-ups that were archived, and not the one that was not"
[ "$balance" = 1007 ]
echo 'the drill passed'
