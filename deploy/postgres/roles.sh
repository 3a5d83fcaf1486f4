#!/bin/sh
# Makes the database of Scrip and its two accounts: one owns the schema and migrates it, the other one serves.
set -eu
test -s /run/secrets/owner_password
test -s /run/secrets/service_password
psql --username postgres --set ON_ERROR_STOP=1 <<'SQL'
\set owner `cat /run/secrets/owner_password`
\set service `cat /run/secrets/service_password`
create role scrip_owner login createrole password :'owner';
create role scrip_service login password :'service';
grant scrip_service to scrip_owner with admin option;
create database scrip owner scrip_owner;
SQL
