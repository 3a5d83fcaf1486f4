import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { createMerchant } from '../src/api-keys/create-merchant.ts';
import type { Operator, Service } from '../src/context.ts';
import { openOwner } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { atEnd } from '../test/support/leave-nothing.ts';
import type { EventReport, Hooks } from './hooks.ts';
import { askedIn, type Load, type Merchant } from './load.ts';
import { checkTraces, type Traces } from './traces.ts';
import { type Verdict, verify, verifyBalances, verifyBooks } from './verify.ts';

/** The beginning of every soak, and its end: the books are compared with every answer and event. */

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

/** Waits until no batch is in production: the worker completes batches after any crash. */
async function batchesEnded(owner: Awaited<ReturnType<typeof openOwner>>): Promise<void> {
  for (let tries = 0; tries < BATCH_TRIES; tries++) {
    const [row] = await owner.query<{ left: number }>(
      sql`select count(*)::int as left from scrip.batches where status = 'PROCESSING'`,
    );
    if (row?.left === 0) return;
    await sleep(100);
  }
}

/** The log of the processes, beside the folder so that it is kept after a failure. */
export function keepLog(folder: string): string {
  const log = `${folder}.log`;
  atEnd((isStopped) => isStopped && rm(log, { force: true }));
  return log;
}

export type Proof = {
  readonly verdict: Verdict;
  readonly events: EventReport;
  /** What was seen of each reference, compared with the model of its protocol. */
  readonly traces: Traces;
};

/** Sends every request again, and checks all balances, batches, books and events. */
export async function prove(
  service: Service,
  ownerUrl: string,
  { load, hooks, baseUrl }: { readonly load: Load; readonly hooks: Hooks; readonly baseUrl: string },
): Promise<Proof> {
  const owner = await openOwner(ownerUrl);
  try {
    await batchesEnded(owner);
    const traces = await checkTraces(owner, askedIn(load.sent), false);
    const verdict = await verify(load.sent, owner, baseUrl);
    await batchesEnded(owner);
    await verifyBalances(load.sent, owner, verdict.wrong);
    await verifyBooks(owner, service, verdict.wrong);
    return { verdict, events: await hooks.verify(owner), traces };
  } finally {
    await owner.close();
  }
}

const countCode = ({ sent }: Load, code: string) =>
  sent.reduce((sum, { answers }) => sum + answers.filter((each) => each?.statusCode === code).length, 0);

/** Prints the counts of faults, requests and differences. */
export function print(
  faults: ReadonlyMap<string, number>,
  load: Load,
  { verdict, events, traces }: Proof,
): void {
  const table = new Table({ style: { head: [], border: [] }, colAligns: ['left', 'right'] });
  for (const [name, count] of faults) table.push([name, count]);
  table.push(
    ['requests', load.requests],
    ['references', load.sent.length],
    ['declined as expired, by a clock that was ahead', countCode(load, '54')],
    ['acknowledged', verdict.acknowledged],
    ['unanswered', verdict.unanswered],
    ['of these, had happened', verdict.happened],
    ['lost', verdict.lost.length],
    ['answered in two ways', verdict.changed.length],
    ['doubled', verdict.doubled.length],
    ['answers of a bug (500)', load.faulty.length],
    ['wrong otherwise', verdict.wrong.length],
    ['traces that the model was compared with', traces.traces],
    ['their events', traces.events],
    ['traces that the model refuses', traces.refused.length],
    ['webhook events due', events.due],
    ['delivered at least once', events.delivered],
    ['delivered again, under the same id', events.again],
    ['events lost', events.lost.length],
    ['events invented', events.invented.length],
  );
  process.stdout.write(`${table.toString()}\n`);
}

/** Prints the counts. Throws if something was lost, doubled or differs. */
export async function report(
  faults: ReadonlyMap<string, number>,
  load: Load,
  proof: Proof,
  log: string,
): Promise<void> {
  print(faults, load, proof);
  const { verdict, events, traces } = proof;
  const found = [
    ...[...verdict.lost, ...verdict.changed, ...verdict.doubled, ...load.faulty, ...verdict.wrong],
    ...[...events.lost, ...events.invented, ...traces.refused],
  ];
  if (found.length > 0)
    throw new Error(
      `the soak failed (the log of the processes is ${log}):\n${found.slice(0, 20).join('\n')}`,
    );
  await rm(log, { force: true });
}
