import { type Sql, sql } from './sql.ts';

/** The partitions of the months from one to another (sql/004-partitions.sql). */
export function createPartitions(first: Date, last: Date): Sql {
  return sql`select create_partitions(${first}, ${last}) as made`;
}

export function dropOldDeliveries(before: Date): Sql {
  return sql`select drop_old_deliveries(${before}) as month`;
}
