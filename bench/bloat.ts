import { redeem } from '../src/redemptions/redeem.ts';
import { print } from './figures.ts';
import { draw } from './fill.ts';
import { fill } from './growth.ts';
import type { Stage } from './stage.ts';

/**
 * The size of tables and indexes after many redemptions, beside the size of the same rows when they are
 * rewritten.
 */

const VOUCHERS = 1_000_000;
const AT_ONCE = 512;
const TABLES = ['vouchers', 'journal', 'floats'] as const;
const MB = 1024 * 1024;

type Sizes = { readonly tableMb: number; readonly indexesMb: number };

export type BloatResult = {
  readonly vouchers: number;
  readonly redemptions: number;
  /** The share of updates of vouchers that stayed on their page and wrote no index (HOT). */
  readonly hotShare: number;
  readonly tables: readonly {
    readonly table: string;
    readonly before: Sizes;
    readonly after: Sizes;
    readonly anew: Sizes;
  }[];
};

/**
 * Redeems a cent at a time from vouchers spread over the table, with autovacuum on, and measures the
 * sizes.
 */
export async function measureBloat(stage: Stage, redemptions: number): Promise<BloatResult> {
  await fill(stage, 0, VOUCHERS, 1);
  const before = await allSizes(stage);
  const updates = await countUpdates(stage);
  await redeemAll(stage, redemptions);
  const after = await allSizes(stage);
  const later = await countUpdates(stage);
  for (const table of TABLES) await stage.owner.query(`vacuum full ${table}`);
  const anew = await allSizes(stage);
  const result = {
    vouchers: VOUCHERS,
    redemptions,
    hotShare: (later.hot - updates.hot) / (later.all - updates.all),
    tables: TABLES.map((table, at) => ({
      table,
      before: before[at],
      after: after[at],
      anew: anew[at],
    })) as BloatResult['tables'],
  };
  print(
    `${redemptions} redemptions of ${VOUCHERS} vouchers: ${(result.hotShare * 100).toFixed(1)} % of updates in place`,
  );
  for (const each of result.tables) {
    const sizeOf = (size: Sizes) => `${size.tableMb} + ${size.indexesMb}`;
    print(
      `${each.table} and its indexes, MB: ${sizeOf(each.before)} before, ${sizeOf(each.after)} after, ${sizeOf(each.anew)} written anew`,
    );
  }
  return result;
}

async function redeemAll(stage: Stage, redemptions: number): Promise<void> {
  const vouchers = draw(VOUCHERS, VOUCHERS);
  let number = 0;
  const till = async () => {
    while (number < redemptions) {
      const own = number++;
      const { code, pin } = vouchers[own % vouchers.length] ?? { code: '', pin: '' };
      await redeem(stage.context, { code, pin, amount: 0.01, reference: `bloat-${own}` });
      if (own % 1_000_000 === 999_999) print(`${own + 1} redemptions`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, till));
}

async function allSizes({ owner }: Stage): Promise<Sizes[]> {
  // The journal is partitioned: a table's own size is that of its leaves.
  const { rows } = await owner.query(
    `select round(sum(pg_table_size(p.relid)) / ${MB})::int as "tableMb",
      round(sum(pg_indexes_size(p.relid)) / ${MB})::int as "indexesMb"
     from unnest($1::text[]) with ordinality t (name, place) cross join lateral (
       select relid from pg_partition_tree(t.name::regclass) where isleaf
       union select t.name::regclass
     ) p
     group by t.place order by t.place`,
    [TABLES],
  );
  return rows;
}

async function countUpdates(stage: Stage): Promise<{ all: number; hot: number }> {
  await stage.owner.query('select pg_stat_clear_snapshot()');
  const { rows } = await stage.owner.query(
    "select n_tup_upd::float8 as all, n_tup_hot_upd::float8 as hot from pg_stat_user_tables where relid = 'vouchers'::regclass",
  );
  return rows[0];
}
