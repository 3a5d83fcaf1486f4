/**
 * The load of merchants that order batches and wait for them, or download them, in a process of its own.
 * Each client begins the next batch as soon as it has the one before. Prints the result as JSON.
 */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Times } from './figures.ts';
import { timesOf } from './statistics.ts';

export type BatchPlan = {
  readonly url: string;
  readonly authorization: string;
  readonly clients: number;
  /** No batch is begun after this time. Each client completes at least one. */
  readonly seconds: number;
  readonly what:
    | { readonly order: { readonly prefix: string; readonly quantity: number } }
    | { readonly paths: readonly string[] };
};

export type BatchLoad = {
  readonly answered: number;
  readonly perSecond: number;
  /** The average size of an answer. */
  readonly bytes: number;
  readonly failed: number;
  /**
   * The time to the first byte of the answer, and to the last. Of an order: until it was accepted, and
   * until the batch was complete.
   */
  readonly first: Times;
  readonly whole: Times;
};

type Got = {
  readonly status: number;
  readonly firstMs: number;
  readonly bytes: number;
  readonly head: string;
};

/** The interval between two checks of a batch. */
const LOOK_MS = 10;
/** The status of a batch is in the first bytes of an answer. */
const HEAD_BYTES = 400;

const plan = JSON.parse(process.argv[2] ?? '{}') as BatchPlan;
const firsts: number[] = [];
const wholes: number[] = [];
let bytes = 0;
let failed = 0;
let number = 0;

function ask(agent: Agent, path: string, body?: string): Promise<Got> {
  return new Promise((resolve, reject) => {
    const askedAt = performance.now();
    const headers = {
      authorization: plan.authorization,
      ...(body && { 'content-type': 'application/json' }),
    };
    const sent = request(plan.url + path, { agent, headers, method: body ? 'POST' : 'GET' }, (response) => {
      const firstMs = performance.now() - askedAt;
      let length = 0;
      let head = '';
      response.on('data', (chunk: Buffer) => {
        if (length === 0) head = chunk.toString('latin1', 0, HEAD_BYTES);
        length += chunk.length;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, firstMs, bytes: length, head }));
      response.on('error', reject);
    });
    sent.on('error', reject).end(body);
  });
}

/** Orders a batch, and polls it until it is complete. @returns when it was accepted, and the last answer */
async function order(agent: Agent, { prefix, quantity }: { prefix: string; quantity: number }): Promise<Got> {
  const reference = `${prefix}-${++number}`;
  const ordered = await ask(agent, '/api/v2/vouchers', JSON.stringify({ reference, quantity, value: 0.01 }));
  let got = ordered;
  while (got.status === 200 && got.head.includes('"status":"PROCESSING"')) {
    await sleep(LOOK_MS);
    got = await ask(agent, `/api/v2/vouchers/${reference}`);
  }
  return { ...got, firstMs: ordered.firstMs };
}

/** Whether an answer is a complete batch, or comes from bare Fastify. */
function isWhole({ status, head }: Got): boolean {
  const state = /"status":"(\w+)"/.exec(head)?.[1];
  return status === 200 && !head.includes('"data":null') && (state === undefined || state === 'COMPLETED');
}

async function client(until: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  do {
    const beganAt = performance.now();
    try {
      const { what } = plan;
      const got =
        'order' in what
          ? await order(agent, what.order)
          : await ask(agent, what.paths[number++ % what.paths.length] as string);
      if (!isWhole(got)) throw new Error(got.head);
      firsts.push(got.firstMs);
      wholes.push(performance.now() - beganAt);
      bytes += got.bytes;
    } catch {
      failed++;
    }
  } while (performance.now() < until);
  agent.destroy();
}

const beganAt = performance.now();
await Promise.all(Array.from({ length: plan.clients }, () => client(beganAt + plan.seconds * 1000)));
const seconds = (performance.now() - beganAt) / 1000;
const answered = wholes.length;
const load: BatchLoad = {
  answered,
  perSecond: answered / seconds,
  bytes: bytes / Math.max(1, answered),
  failed,
  first: timesOf(firsts),
  whole: timesOf(wholes),
};
process.stdout.write(`${JSON.stringify(load)}\n`);
