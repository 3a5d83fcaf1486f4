import { randomUUID } from 'node:crypto';
import { redeem } from '../src/redemptions/redeem.ts';
import { balance } from '../src/vouchers/balance.ts';
import { print, table } from './figures.ts';
import { draw } from './fill.ts';
import { fill } from './growth.ts';
import type { Voucher } from './requests.ts';
import { type Given, numberOf } from './scenario.ts';
import { Stage } from './stage.ts';
import { usageOf } from './usage.ts';

/** What each call of some operation costs the database. */
type Cost = {
  readonly cpuUs: number;
  readonly bytes: number;
  readonly records: number;
  /** Pages that were logged whole, by table or index. */
  readonly pages: readonly { readonly name: string; readonly perCall: number; readonly bytes: number }[];
};

const CALLERS = 64;
/** Calls before a measurement: they open the connections, and plan the statements. */
const WARM_UP = 2_000;

/**
 * The write-ahead log of a redemption just after a checkpoint, when each page is logged whole at its first
 * change. The figures of the log do not depend on other load of the machine.
 */
export async function run(given: Given): Promise<void> {
  const vouchers = numberOf(given, 'vouchers');
  const calls = numberOf(given, 'calls');
  const stage = await Stage.open();
  // The rows of the current month are in the partition that is written.
  const {
    rows: [now],
  } = await stage.owner.query("select date_trunc('month', now(), 'UTC') as month");
  await fill(stage, 0, vouchers, numberOf(given, 'entries'), { since: now.month });
  await stage.owner.query('create extension pg_walinspect schema pg_catalog');
  const prefix = `bench-${Date.now()}`;
  let number = 0;
  const ordered = () => `${prefix}-${String(++number).padStart(9, '0')}`;
  const redeemUnder = (reference: () => string) => (voucher: Voucher) =>
    redeem(stage.context, { ...voucher, amount: 0.01, reference: reference() });
  const operations = {
    'redeem, references in order': redeemUnder(ordered),
    'redeem, random references': redeemUnder(randomUUID),
    balance: (voucher: Voucher) => balance(stage.context, voucher),
  };
  const rows: string[][] = [];
  for (const [name, call] of Object.entries(operations))
    for (let turn = 1; turn <= numberOf(given, 'turns'); turn++) {
      const drawn = draw(vouchers, calls + WARM_UP);
      await callAll(drawn.splice(0, WARM_UP), call);
      await stage.owner.query('checkpoint');
      const { cpuUs, bytes, records, pages } = await costOf(stage, drawn.length, () => callAll(drawn, call));
      rows.push([name, ...[cpuUs, bytes].map((each) => each.toFixed(0)), records.toFixed(2)]);
      const texts = pages.map(
        (page) => `${page.name} ${page.perCall.toFixed(2)} (${page.bytes.toFixed(0)} bytes)`,
      );
      print(`${name}: ${cpuUs.toFixed(0)} µs, ${bytes.toFixed(0)} bytes; whole pages: ${texts.join(', ')}`);
    }
  print(table([`${vouchers} vouchers`, 'CPU µs', 'bytes', 'records'], rows));
}

async function callAll(vouchers: readonly Voucher[], call: (voucher: Voucher) => Promise<unknown>) {
  const left = vouchers.values();
  const caller = async () => {
    for (const voucher of left) await call(voucher);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

async function costOf(
  { owner, databasePid }: Stage,
  calls: number,
  work: () => Promise<void>,
): Promise<Cost> {
  const look = async () => {
    const { rows } = await owner.query('select pg_current_wal_insert_lsn()::text as lsn');
    return { lsn: rows[0].lsn as string, cpuMs: (await usageOf(databasePid))?.cpuMs ?? 0 };
  };
  const before = await look();
  await work();
  const after = await look();
  const { rows: sums } = await owner.query(
    `select sum(count)::float8 / $3 as records, sum(combined_size)::float8 / $3 as bytes
from pg_get_wal_stats($1, $2)`,
    [before.lsn, after.lsn, calls],
  );
  const { rows: pages } = await owner.query(
    `select coalesce(c.relname, 'other') as name, count(*)::float8 / $3 as "perCall",
  sum(block_fpi_length)::float8 / $3 as bytes
from pg_get_wal_block_info($1, $2) b left join pg_class c on pg_relation_filenode(c.oid) = b.relfilenode
where b.block_fpi_length > 0 group by 1 having count(*) >= $3 / 100.0 order by 2 desc`,
    [before.lsn, after.lsn, calls],
  );
  const cpuUs = ((after.cpuMs - before.cpuMs) * 1_000) / calls;
  return { cpuUs, bytes: sums[0].bytes, records: sums[0].records, pages };
}
