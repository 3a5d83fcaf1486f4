import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import type { Operator, Service } from '../src/context.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { createMerchant } from '../src/merchants/merchants.ts';
import { atEnd } from '../test/leave-nothing.ts';
import type { Hooks, Told } from './hooks.ts';
import type { Load, Merchant } from './load.ts';
import { type Verdict, verify, verifyBalances, verifyBooks } from './verify.ts';

/** What every soak begins with, and how it ends: with the books held against every answer and every event. */

const MERCHANTS = 3;
const FLOAT_MINOR = 1_000_000_000_00n;
const BATCH_TRIES = 600;

export function operatorOf(service: Service): Operator {
  return {
    service,
    actor: { kind: 'command-line', id: null, requestId: null, name: 'soak', origin: 'soak', reason: null },
  };
}

export async function createMerchants(service: Service): Promise<Merchant[]> {
  const merchants: Merchant[] = [];
  for (let number = 1; number <= MERCHANTS; number++) {
    const { id, keyId, secret } = await createMerchant(operatorOf(service), {
      name: `Soak ${number}`,
      permit: ['update-redemption'],
      opaque: false,
      productId: 1,
      float: { currency: 'USD', amountMinor: FLOAT_MINOR },
    });
    merchants.push({ id, authorization: `Basic ${btoa(`${keyId}:${secret}`)}` });
  }
  return merchants;
}

/** Until no batch is under way any more: whatever crashed, the worker goes on with it. */
async function batchesEnded(owner: Awaited<ReturnType<typeof openOwner>>): Promise<void> {
  for (let tries = 0; tries < BATCH_TRIES; tries++) {
    const [row] = await owner.query<{ left: number }>(
      sql`select count(*)::int as left from scrip.batches where status = 'PROCESSING'`,
    );
    if (row?.left === 0) return;
    await sleep(100);
  }
}

/** What the processes have to say: beside the folder, so that it is there when something was wrong. */
export function keepLog(folder: string): string {
  const log = `${folder}.log`;
  atEnd((isStopped) => isStopped && rm(log, { force: true }));
  return log;
}

export type Proof = { readonly verdict: Verdict; readonly told: Told };

/** Asks for everything again, and looks at every balance, batch, book and event. */
export async function prove(
  service: Service,
  ownerUrl: string,
  { load, hooks, baseUrl }: { readonly load: Load; readonly hooks: Hooks; readonly baseUrl: string },
): Promise<Proof> {
  const owner = await openOwner(ownerUrl);
  try {
    await batchesEnded(owner);
    const verdict = await verify(load.sent, owner, baseUrl);
    await batchesEnded(owner);
    await verifyBalances(load.sent, owner, verdict.wrong);
    await verifyBooks(owner, service, verdict.wrong);
    return { verdict, told: await hooks.verify(owner) };
  } finally {
    await owner.close();
  }
}

const countCode = ({ sent }: Load, code: string) =>
  sent.reduce((sum, { told }) => sum + told.filter((each) => each?.statusCode === code).length, 0);

/** Prints what there was, and what came of it. */
export function print(faults: ReadonlyMap<string, number>, load: Load, { verdict, told }: Proof): void {
  const table = new Table({ style: { head: [], border: [] }, colAligns: ['left', 'right'] });
  for (const [name, count] of faults) table.push([name, count]);
  table.push(
    ['requests', load.requests],
    ['references', load.sent.length],
    ['refused as expired, by a clock that was ahead', countCode(load, '54')],
    ['acknowledged', verdict.acknowledged],
    ['unanswered', verdict.unanswered],
    ['of these, had happened', verdict.happened],
    ['lost', verdict.lost.length],
    ['told in two ways', verdict.changed.length],
    ['doubled', verdict.doubled.length],
    ['answers of a bug (500)', load.faulty.length],
    ['wrong otherwise', verdict.wrong.length],
    ['webhook events due', told.due],
    ['delivered at least once', told.delivered],
    ['delivered again, under the same id', told.again],
    ['events lost', told.lost.length],
    ['events invented', told.invented.length],
  );
  process.stdout.write(`${table.toString()}\n`);
}

/** Prints what there was, and what came of it; throws where something was lost, doubled or does not fit. */
export async function report(
  faults: ReadonlyMap<string, number>,
  load: Load,
  proof: Proof,
  log: string,
): Promise<void> {
  print(faults, load, proof);
  const { verdict, told } = proof;
  const found = [
    ...[...verdict.lost, ...verdict.changed, ...verdict.doubled, ...load.faulty, ...verdict.wrong],
    ...[...told.lost, ...told.invented],
  ];
  if (found.length > 0)
    throw new Error(
      `not as it must be (what the processes said is in ${log}):\n${found.slice(0, 20).join('\n')}`,
    );
  await rm(log, { force: true });
}
