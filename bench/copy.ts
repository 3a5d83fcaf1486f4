import { finished } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { takeNumbers } from '../src/batches/fill.ts';
import { makeRows } from '../src/batches/rows.ts';
import type { Context } from '../src/context.ts';

/**
 * The yardsticks of batches: COPY of their rows into the same tables and out of them, with everything
 * else done before.
 */

const VALUE = 1;

/** Rows of both tables in the text format of COPY. */
type CopyRows = { readonly vouchers: Buffer; readonly entries: Buffer };

async function makeFor({ service }: Context, count: number): Promise<CopyRows> {
  const numbers = await takeNumbers(service.db, count);
  const now = new Date();
  const made = makeRows(service.keys, { numbers, buckets: service.buckets.all, now });
  const columnOf = (array: string) => array.slice(1, -1).replaceAll('"', '').split(',');
  const [serials, buckets, ids] = [made.serials, made.buckets, made.entryIds].map(columnOf);
  const [codeKeys, pinKeys, sealed] = [made.codeKeys, made.pinKeys, made.sealed].map(columnOf);
  const at = now.toISOString();
  const lines = (row: (index: number) => unknown[]) =>
    Buffer.from(numbers.map((_, index) => `${row(index).join('\t')}\n`).join(''));
  return {
    vouchers: lines((n) => [
      ...[serials?.[n], 0, buckets?.[n], codeKeys?.[n], pinKeys?.[n], sealed?.[n], at, VALUE, VALUE, at, 1],
    ]),
    entries: lines((n) => [
      ...[ids?.[n], 'ACTIVATION', 1, serials?.[n], VALUE, 'USD', 1, serials?.[n], 0, buckets?.[n], at],
    ]),
  };
}

const COPY_VOUCHERS = `
copy scrip.vouchers (serial_number, batch_id, bucket, code_key, pin_key, sealed, expires_at, value_minor,
  balance_minor, activated_at, payer_id) from stdin`;
const COPY_ENTRIES = `
copy scrip.journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
  serial_number, batch_id, bucket, occurred_at) from stdin`;

async function copy(client: pg.Client, { vouchers, entries }: CopyRows): Promise<void> {
  await client.query('begin');
  for (const [text, rows] of [
    [COPY_VOUCHERS, vouchers],
    [COPY_ENTRIES, entries],
  ] as const) {
    const stream = client.query(copyFrom(text));
    stream.end(rows);
    await finished(stream);
  }
  await client.query('commit');
}

/**
 * Vouchers a second, one transaction for each batch, as the owner. A code that exists already, as happens
 * with many rows, fails the transaction, which is then repeated with new codes.
 * @param quantity of a batch
 */
export async function copyIn(
  url: string,
  context: Context,
  quantity: number,
  batches = 1,
  clients = 1,
): Promise<number> {
  const made: CopyRows[] = [];
  while (made.length < batches) made.push(await makeFor(context, quantity));
  const left = made.values();
  const connected = Array.from({ length: clients }, () => new pg.Client({ connectionString: url }));
  await Promise.all(connected.map((client) => client.connect()));
  const began = performance.now();
  try {
    await Promise.all(
      connected.map(async (client) => {
        for (const rows of left) await copy(client, rows);
      }),
    );
    return (batches * quantity) / ((performance.now() - began) / 1000);
  } catch (error) {
    if ((error as { constraint?: unknown }).constraint !== 'vouchers_code_unique') throw error;
    return copyIn(url, context, quantity, batches, clients);
  } finally {
    await Promise.all(connected.map((client) => client.end()));
  }
}

/**
 * Vouchers a second out of existing batches, sealed as they are in the table. One of the clients reads
 * each batch once.
 */
export async function copyOut(
  url: string,
  quantity: number,
  batchIds: readonly number[],
  clients = 1,
): Promise<number> {
  const connected = Array.from({ length: clients }, () => new pg.Client({ connectionString: url }));
  await Promise.all(connected.map((client) => client.connect()));
  const left = batchIds.values();
  const began = performance.now();
  await Promise.all(
    connected.map(async (client) => {
      for (const id of left) {
        const rows = client.query(
          copyTo(
            `
              copy (select serial_number, sealed from scrip.vouchers where batch_id = ${id}
              order by serial_number) to stdout (format binary)`,
          ),
        );
        await finished(rows.resume());
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  await Promise.all(connected.map((client) => client.end()));
  return (batchIds.length * quantity) / seconds;
}
