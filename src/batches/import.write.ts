import { audit } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { randomPin } from '../credentials.ts';
import { serialOf } from '../db/buckets.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { bytesArray, plainArray, type Sql, sql, textArray } from '../db/sql.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { claimIn } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { accountOf } from '../ledger/journal.ts';
import type { Product } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import { drawNumbers } from './fill.ts';
import { findTaken, type ImportRow } from './import.check.ts';
import { UnreadableFile } from './import.read.ts';

type ImportedVoucher = {
  readonly bucket: number;
  readonly serial: bigint;
  readonly codeKey: string;
  readonly pinKey: string;
  readonly sealed: Buffer;
  readonly balanceMinor: bigint;
  readonly expiresAt: Date;
  readonly reference: string | null;
  readonly issuedAt: Date | null;
  readonly lastUsedAt: Date | null;
};

/** Inserts the vouchers of an imported batch, and the movements that pay for them (sql/016-imports.sql). */
function importVouchers(
  importId: number,
  batchId: number,
  payer: bigint,
  vouchers: readonly ImportedVoucher[],
  now: Date,
): Sql {
  return sql`
select import_vouchers(
  ${importId},
  ${newId(now)},
  ${batchId},
  ${payer},
  ${plainArray(vouchers.map(({ bucket }) => bucket))}::int[],
  ${plainArray(vouchers.map(({ serial }) => serial))}::bigint[],
  ${plainArray(vouchers.map(({ codeKey }) => codeKey))}::uuid[],
  ${plainArray(vouchers.map(({ pinKey }) => pinKey))}::uuid[],
  ${bytesArray(vouchers.map(({ sealed }) => sealed))}::bytea[],
  ${plainArray(vouchers.map(({ balanceMinor }) => balanceMinor))}::bigint[],
  ${plainArray(vouchers.map(({ expiresAt }) => expiresAt.toISOString()))}::timestamptz[],
  ${plainArray(vouchers.map(() => newId(now)))}::uuid[],
  ${textArray(vouchers.map(({ reference }) => reference))}::text[],
  ${plainArray(vouchers.map(({ issuedAt }) => issuedAt?.toISOString() ?? null))}::timestamptz[],
  ${plainArray(vouchers.map(({ lastUsedAt }) => lastUsedAt?.toISOString() ?? null))}::timestamptz[],
  ${now})`;
}

/** An import that has begun. */
export type ImportToWrite = {
  readonly id: number;
  readonly merchantId: number;
  readonly paidFrom: 'funding' | 'float';
};

/** The vouchers of one product in a chunk: their batch, and the account that pays for them. */
type Group = {
  readonly product: Product;
  readonly rows: readonly ImportRow[];
  readonly batchId: number;
  readonly payer: bigint;
};

/**
 * Writes one chunk in one transaction: a batch for each product, its vouchers, a movement for each voucher,
 * and the record of the chunk. The last chunk ends the import.
 */
export function writeChunk(
  operator: Operator,
  to: ImportToWrite,
  chunk: number,
  rows: readonly ImportRow[],
): Promise<void> {
  const { service } = operator;
  return retrying(() =>
    service.db.transaction(async (tx) => {
      await holdKeyRing(tx, service.keys);
      // There is a row if the chunk was not imported before. If another process is importing it, it waits
      // for that process.
      const [isNew] = await tx.query(sql`
insert into voucher_import_chunks (import_id, chunk, vouchers) values (${to.id}, ${chunk}, ${rows.length})
on conflict do nothing returning chunk`);
      if (!isNew) return;
      // An order may have drawn one of these codes since the check.
      const [taken] = await findTaken(tx, service, rows);
      if (taken)
        throw new UnreadableFile(
          taken.line,
          'the code is that of a voucher that has been made since the check',
        );
      const now = service.clock();
      const groups: Group[] = [];
      for (const group of groupRows(rows)) groups.push(await prepareGroup(service, tx, to, group, now));
      for (const group of groups) await writeGroup(service, tx, to.id, group, now);
      // Ends an import if all its chunks are imported, and then returns a row.
      const [finished] = await tx.query(sql`
update voucher_imports i set finished_at = ${now}
where i.id = ${to.id} and i.finished_at is null
  and i.chunks = (select count(*) from voucher_import_chunks c where c.import_id = i.id)
returning i.id`);
      if (finished)
        await audit(tx, operator, {
          action: 'voucher.imported',
          subject: `merchant ${to.merchantId}`,
          after: { import: to.id },
        });
    }),
  );
}

function groupRows(rows: readonly ImportRow[]): (readonly [ImportRow, ...ImportRow[]])[] {
  const groups = new Map<number, [ImportRow, ...ImportRow[]]>();
  for (const row of rows) {
    const group = groups.get(row.product.id);
    if (group) group.push(row);
    else groups.set(row.product.id, [row]);
  }
  return [...groups.values()];
}

async function prepareGroup(
  service: Service,
  tx: Queries,
  { merchantId, paidFrom }: ImportToWrite,
  rows: readonly [ImportRow, ...ImportRow[]],
  now: Date,
): Promise<Group> {
  const [{ product }] = rows;
  const { currency, id: productId } = product;
  const transactionId = newId(now);
  const reference = `import-${transactionId}`;
  const id = transactionId;
  await claimIn(tx, service, { merchantId, operation: 'generate', reference, id, fingerprint: 'import' });
  // The sweep visits a batch when it expires. From then on, vouchers that expire later are swept one by one.
  const expiresAt = new Date(Math.min(...rows.map((row) => row.expiresAt.getTime())));
  // The batch is complete from the start, and has no value, since each voucher has its own balance.
  const [batch] = await tx.query<{ id: number }>(sql`
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, produced, expires_at,
  currency, decimals, activation, scope, expiry_policy, status, accepted_at, progressed_at, ended_at)
select ${transactionId}, ${merchantId}, ${reference}, p.id, ${rows.length}, ${rows.length}, ${expiresAt},
  p.currency, p.decimals, 'immediate', p.scope, p.expiry_policy, 'COMPLETED', ${now}, now(), ${now}
from products p where p.id = ${productId}
returning id`);
  const isFloat = paidFrom === 'float';
  const payer = await accountOf(tx, isFloat ? merchantId : 0, currency, isFloat ? 'FLOAT' : 'FUNDING');
  if (!batch || payer === undefined)
    throw new Error('the batch of an import, or the account that pays for it, is missing');
  if (isFloat) {
    const amountMinor = rows.reduce((sum, row) => sum + row.balanceMinor, 0n);
    // Takes an amount from a float for a hold. `done` is false if the float is too low.
    const [debited] = await tx.query<{ done: boolean }>(
      sql`select debit_float(${payer}, ${amountMinor}, ${newId(now)}, ${now}) as done`,
    );
    if (!debited?.done) throw new Refusal('50');
  }
  return { product, rows, batchId: batch.id, payer };
}

/** Writes vouchers and their movements, sealed under the key that the transaction holds. */
async function writeGroup(
  { keys, buckets }: Service,
  tx: Queries,
  importId: number,
  { rows, batchId, payer }: Group,
  now: Date,
): Promise<void> {
  const [drawn] = await tx.query<{ numbers: string[] }>(drawNumbers(rows.length));
  const numbers = drawn?.numbers ?? [];
  const vouchers = rows.map(({ code, pin: given, line: _, product: __, ...row }, index) => {
    const slot = keys.slotOf(code);
    const serial = serialOf(BigInt(numbers[index] as string), slot);
    const pin = given ?? randomPin();
    const sealed = keys.seal(serial, code, pin);
    const [codeKey, pinKey] = [keys.codeKey(code), keys.pinKey(code, pin)];
    return {
      bucket: buckets.ofSlot(slot),
      serial,
      codeKey,
      pinKey,
      sealed,
      ...row,
    };
  });
  await tx.query(importVouchers(importId, batchId, payer, vouchers, now));
}
