import { type ChildProcess, fork } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { readVouchers, readVouchersOf } from '../src/batches/export.ts';
import { newId } from '../src/ledger/id.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { startDelivery } from '../src/webhooks/deliver.ts';
import { addEndpoint } from '../src/webhooks/endpoints.ts';
import { createSender } from '../src/webhooks/send.ts';
import { started } from '../test/support/leave-nothing.ts';
import { median, print, whole } from './figures.ts';
import { Stage } from './stage.ts';

const EVENTS = 20_000;
const TURNS = 3;
const SLOW_MS = 1_000;
const SELF = fileURLToPath(import.meta.url);

/** The behavior of the receiver by path: /fast, /slow, /never. */
function receive(): void {
  let fast = 0;
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.url === '/never') return;
      if (request.url === '/slow') setTimeout(() => response.end(), SLOW_MS);
      else response.end();
      if (request.url === '/fast' && ++fast % EVENTS === 0) process.send?.('all');
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}

/** Deliveries a second to a fast receiver, alone, and beside endpoints that are slow or never answer. */
export async function run(): Promise<void> {
  const stage = await Stage.open();
  const receiver = started(() => fork(SELF, ['receive']));
  const port = await new Promise<number>((resolve) =>
    receiver.once('message', (message) => resolve(message as number)),
  );
  const { merchantId } = stage;
  const subjectId = await redeemOnce(stage);
  const add = (path: string) => {
    const url = `http://127.0.0.1:${port}/${path}`;
    return addEndpoint(stage.operator, { merchantId, url, events: ['float.low'], full: false }, true);
  };
  const [fast, slow, never] = [await add('fast'), await add('slow'), await add('never')];
  const alone: number[] = [];
  const beside: number[] = [];
  for (let turn = 1; turn <= TURNS; turn++) {
    alone.push(await deliver(stage, receiver, subjectId, [fast.id]));
    beside.push(await deliver(stage, receiver, subjectId, [fast.id, slow.id, never.id]));
    print(
      `turn ${turn}: ${whole(alone.at(-1) ?? 0)}/s alone, ${whole(beside.at(-1) ?? 0)}/s beside a slow and a dead endpoint`,
    );
  }
  print(
    `webhooks: median ${whole(median(alone))} deliveries a second, ${(median(beside) / median(alone)).toFixed(2)} of it beside others that hang`,
  );
}

/** Makes the redemption of which each delivery is made, signed, sent and recorded. */
async function redeemOnce(stage: Stage): Promise<string> {
  const batch = await stage.order(1, 100);
  for await (const [voucher] of readVouchers(stage.context.service, batch)) {
    if (!voucher) continue;
    const { transaction } = await redeem(stage.context, { ...voucher, amount: 1, reference: 'told' });
    return transaction.transactionId;
  }
  throw new Error('there is no voucher');
}

/** The rate of the first endpoint, with as many deliveries waiting for each of the others. */
async function deliver(
  { owner, context: { service } }: Stage,
  receiver: ChildProcess,
  subjectId: string,
  endpointIds: readonly number[],
): Promise<number> {
  const { clock } = service;
  await owner.query('delete from webhook_deliveries');
  // The sender looks for ids of its time only, so that it does not read old partitions.
  const ids = Array.from({ length: EVENTS }, () => newId(clock()));
  await owner.query(
    `insert into webhook_deliveries (endpoint_id, event_id, type, subject_id, occurred_at, due_at)
      select e, id, 'voucher.redeemed', $1, $2, $2 from unnest($3::int[]) e, unnest($4::uuid[]) id`,
    [subjectId, clock(), endpointIds, ids],
  );
  const started = performance.now();
  const cpu = process.cpuUsage();
  const delivery = startDelivery(service, createSender({ allowPrivate: true, clock }), readVouchersOf);
  await new Promise((resolve) => receiver.once('message', resolve));
  const seconds = (performance.now() - started) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  print(`  ${Math.round((user + system) / EVENTS)} µs of this process's CPU a delivery`);
  await delivery.stop();
  return EVENTS / seconds;
}

if (process.argv[1] === SELF && process.argv[2] === 'receive') receive();
