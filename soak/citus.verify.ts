import type { Queries } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import type { Ask, Update } from './citus.load.ts';

type Row = {
  id: string;
  kind: string;
  reference: string;
  serial_number: bigint;
  amount_minor: bigint;
};

const PAGE = 2_000;

/**
 * Compares the answers with the journal: each `00` is booked once, with its id, voucher and amount; no
 * declined request is booked; and each `94` is for a reference that another request has used.
 * @returns the differences
 */
export async function verify(
  owner: Queries,
  merchantId: number,
  asks: readonly Ask[],
  updates: readonly Update[],
): Promise<string[]> {
  const faults: string[] = [];
  const rows = new Map<string, Row>();
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const page = await owner.query<Row>(sql`
select id, kind::text as kind, reference, serial_number, amount_minor from scrip.journal
where merchant_id = ${merchantId} and reference is not null and original_id is null and batch_id is null
  and kind in ('ACTIVATION', 'REDEMPTION') and id > ${after} order by id limit ${PAGE}`);
    for (const row of page) {
      const key = `${row.kind} ${row.reference}`;
      if (rows.has(key)) faults.push(`${key} is booked twice`);
      rows.set(key, row);
    }
    if (page.length < PAGE) break;
    after = page.at(-1)?.id ?? after;
  }
  const fresh = new Map<string, number>();
  for (const request of asks) check(request, rows, fresh, faults);
  for (const [key, count] of fresh) if (count > 1) faults.push(`${key} was answered as new ${count} times`);
  const known = new Set(asks.map(({ operation, reference }) => keyOf(operation, reference)));
  for (const key of rows.keys()) if (!known.has(key)) faults.push(`${key} is booked, and was not requested`);
  faults.push(...(await verifyUpdates(owner, updates)));
  return faults;
}

const keyOf = (operation: string, reference: string) =>
  `${operation === 'redeem' ? 'REDEMPTION' : 'ACTIVATION'} ${reference}`;

function check(
  { operation, reference, card, amount, answers }: Ask,
  rows: ReadonlyMap<string, Row>,
  fresh: Map<string, number>,
  faults: string[],
): void {
  const key = keyOf(operation, reference);
  const row = rows.get(key);
  const isMine = row?.serial_number === card.serialNumber && row.amount_minor === BigInt(amount);
  for (const { code, id } of answers) {
    if (code === '00') fresh.set(key, (fresh.get(key) ?? 0) + 1);
    if (code.startsWith('00')) {
      if (!isMine || row.id !== id)
        faults.push(`${key}: ${code} as ${id}, and the journal has ${row?.id ?? 'nothing'}`);
    } else if (code === '94') {
      if (!row || isMine)
        faults.push(`${key}: 94, and the journal has ${row ? 'this very request' : 'nothing'}`);
    } else if (code !== 'unknown' && isMine) faults.push(`${key}: declined with ${code}, and booked`);
  }
}

async function verifyUpdates(owner: Queries, updates: readonly Update[]): Promise<string[]> {
  const faults: string[] = [];
  const [found] = await owner.query<{ count: bigint }>(
    sql`select count(*) as count from scrip.redemption_updates`,
  );
  const done = new Map<string, number>();
  for (const { reference, code } of updates)
    if (code === '00') done.set(reference, (done.get(reference) ?? 0) + 1);
  for (const [reference, count] of done)
    if (count > 1) faults.push(`${reference} was updated ${count} times`);
  // An update whose answer was lost is declined with 58 when it is sent again.
  const mayBe = new Set(
    updates
      .filter(({ code }) => code === '00' || code === '58' || code === 'unknown')
      .map((u) => u.reference),
  );
  const count = Number(found?.count ?? 0);
  if (count < done.size || count > mayBe.size)
    faults.push(`${count} updates are booked, of ${done.size} to ${mayBe.size}`);
  return faults;
}
