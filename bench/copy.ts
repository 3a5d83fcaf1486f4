import { finished } from 'node:stream/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { becomeProducer, copyEntries, copyVouchers, drawNumbers } from '../src/batches/queries.ts';
import { firstRows, type MadeRows, makeRows } from '../src/batches/rows.ts';
import type { Context } from '../src/context.ts';

/**
 * The yardsticks of batches: their rows by binary COPY alone, into the same tables and out of them, with
 * everything else done before.
 */

const VALUE = 1n;

async function makeFor({ service }: Context, count: number): Promise<MadeRows> {
  const [reserved] = await service.db.query<{ numbers: string[] }>(drawNumbers(count));
  const now = new Date();
  return makeRows(service.keys, {
    numbers: (reserved?.numbers ?? []).map(BigInt),
    buckets: service.buckets.all,
    batchId: 0,
    expiresAt: now,
    now,
    activation: { amountMinor: VALUE, currency: 'USD', merchantId: 1, reserveAccount: 1n },
  });
}

function copy({ service }: Context, { vouchers, entries, count }: MadeRows): Promise<void> {
  return service.db.transaction(async (tx) => {
    await tx.query(becomeProducer);
    await tx.copyIn(copyVouchers, firstRows(vouchers, count));
    if (entries) await tx.copyIn(copyEntries, firstRows(entries, count));
  });
}

/**
 * Vouchers a second, one transaction for each batch. A code that exists already, which so many rows at
 * once do meet, fails it: then it is all made again.
 * @param quantity of a batch
 */
export async function copyIn(context: Context, quantity: number, batches = 1, clients = 1): Promise<number> {
  const made: MadeRows[] = [];
  while (made.length < batches) made.push(await makeFor(context, quantity));
  const left = made.values();
  const began = performance.now();
  try {
    await Promise.all(
      Array.from({ length: clients }, async () => {
        for (const rows of left) await copy(context, rows);
      }),
    );
  } catch (error) {
    if ((error as { constraint?: unknown }).constraint !== 'vouchers_code_unique') throw error;
    return copyIn(context, quantity, batches, clients);
  }
  return (batches * quantity) / ((performance.now() - began) / 1000);
}

/**
 * Vouchers a second of batches that are there, as they lie in the table, sealed: each batch once by one
 * of the clients.
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
