/**
 * `npm run bench:webhooks`: deliveries a second to a fast receiver in a process of its own, alone, and
 * beside an endpoint that never answers and one that takes a second, with as many deliveries waiting for
 * each of them.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { authenticate } from '../src/api-keys/authenticate.ts';
import { createMerchant } from '../src/api-keys/create-merchant.ts';
import { readVouchers, readVouchersOf } from '../src/batches/export.ts';
import { generate } from '../src/batches/generate.ts';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import type { Service } from '../src/context.ts';
import { createLogger } from '../src/log.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { startDelivery } from '../src/webhooks/deliver.ts';
import { addEndpoint } from '../src/webhooks/endpoints.ts';
import { createSender } from '../src/webhooks/send.ts';
import { leavingNothing, opened, started, temporaryFolder } from '../test/support/leave-nothing.ts';
import { median } from './measure.ts';

const EVENTS = 20_000;
const TURNS = 3;
const SLOW_MS = 1_000;
const SELF = fileURLToPath(import.meta.url);
const print = (line: string) => process.stdout.write(`${line}\n`);

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

async function bench(folder: string): Promise<void> {
  const env = { ...process.env, SCRIP_DATA_DIR: folder, SCRIP_DATABASE_URL: '', SCRIP_KEYS: '' };
  const { service } = await opened(
    () => openService(readConfig(env), { name: 'scrip-bench', create: true, log: createLogger('error') }),
    ({ close }) => close(),
  );
  const receiver = started(() => fork(SELF, ['receive']));
  const port = await new Promise<number>((resolve) =>
    receiver.once('message', (message) => resolve(message as number)),
  );
  const { merchantId, subjectId } = await prepare(service);
  const add = (path: string) => {
    const url = `http://127.0.0.1:${port}/${path}`;
    return addEndpoint(operatorOf(service), { merchantId, url, events: ['float.low'], full: false }, true);
  };
  const [fast, slow, never] = [await add('fast'), await add('slow'), await add('never')];
  const alone: number[] = [];
  const beside: number[] = [];
  for (let turn = 1; turn <= TURNS; turn++) {
    alone.push(await deliver(service, receiver, subjectId, [fast.id]));
    beside.push(await deliver(service, receiver, subjectId, [fast.id, slow.id, never.id]));
    print(
      `turn ${turn}: ${round(alone.at(-1))}/s alone, ${round(beside.at(-1))}/s beside a slow and a dead endpoint`,
    );
  }
  print(
    `webhooks: median ${round(median(alone))} deliveries a second, ${(median(beside) / median(alone)).toFixed(2)} of it beside others that hang`,
  );
}

const operatorOf = (service: Service) => ({
  service,
  actor: {
    kind: 'command-line' as const,
    id: null,
    requestId: null,
    name: 'bench',
    origin: 'bench',
    reason: null,
  },
});
const round = (figure: number | undefined) => Math.round(figure ?? 0).toLocaleString('en');

/** A merchant, and the redemption of which each delivery is made, signed, sent and recorded. */
async function prepare(service: Service) {
  const float = { currency: 'USD', amountMinor: 1_000_000n };
  const made = await createMerchant(operatorOf(service), {
    name: 'Bench',
    permit: [],
    opaque: false,
    productId: 1,
    float,
  });
  const { context } = await authenticate(service, `Basic ${btoa(`${made.keyId}:${made.secret}`)}`);
  const { batch } = await generate(context, { reference: 'bench', quantity: 1, value: 100 });
  for await (const [voucher] of readVouchers(service, batch)) {
    if (!voucher) continue;
    const { transaction } = await redeem(context, { ...voucher, amount: 1, reference: 'told' });
    return { merchantId: made.id, subjectId: transaction.transactionId };
  }
  throw new Error('there is no voucher');
}

/** The rate of the first endpoint, with as many deliveries waiting for each of the others. */
async function deliver(
  service: Service,
  receiver: ChildProcess,
  subjectId: string,
  endpointIds: readonly number[],
): Promise<number> {
  const { db, clock } = service;
  await db.query({ text: 'delete from webhook_deliveries', values: [] });
  await db.query({
    text: `insert into webhook_deliveries (endpoint_id, event_id, type, subject_id, occurred_at, due_at)
      select e, gen_random_uuid(), 'voucher.redeemed', $1, $2, $2 from unnest($3::int[]) e,
        generate_series(1, $4::int)`,
    values: [subjectId, clock(), endpointIds, EVENTS],
  });
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

if (process.argv[2] === 'receive') receive();
else await leavingNothing(async () => bench(await temporaryFolder('scrip-bench-')));
