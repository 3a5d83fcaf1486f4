-- The role of the service on every node of a Citus cluster, before its tables are distributed
-- (distribute.sql).
--
-- Citus connects from node to node as the current role, so this role signs in (docs/how-to/citus.md, "Signing
-- in between the nodes"). The search path is for later migrations: Citus writes types into some statements
-- without their schema. Every node runs this file.
--
-- Citus estimates the cost of a function call as infinite, to make PostgreSQL choose a plan for each call.
-- With such a cost, PostgreSQL compiles the statement (JIT), which took 6 ms of processor time in each call.
do $$
declare
  node record;
begin
  for node in
    select n.nodename, n.nodeport, r.* from run_command_on_all_nodes($run$
      do $body$ begin
        perform set_config('citus.enable_ddl_propagation', 'off', true);
        if not exists (select from pg_roles where rolname = 'scrip_service') then
          create role scrip_service;
        end if;
        alter role scrip_service login;
        execute format('alter database %I set search_path = scrip, public', current_database());
        execute format('alter database %I set jit = off', current_database());
      end $body$
    $run$) r join pg_dist_node n using (nodeid)
  loop
    if not node.success then
      raise exception 'the roles at %:%: %', node.nodename, node.nodeport, node.result;
    end if;
  end loop;
end $$;
