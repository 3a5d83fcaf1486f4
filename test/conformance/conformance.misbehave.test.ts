import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FAULTS } from '../../conformance/src/misbehave.faults.ts';
import { misbehave, type Task } from '../../conformance/src/misbehave.ts';
import { runClient, startMisbehaving } from '../support/misbehave.ts';

/** The misbehaving server: clients that keep their references pass, and it finds what others do wrong. */

const CLIENT = fileURLToPath(new URL('../support/sdk.misbehave.child.ts', import.meta.url));

describe('the client for TypeScript', () => {
  for (const [seed, variant] of ['a', 'b'].entries()) {
    it(`doubles nothing and leaves nothing unknown at a server that misbehaves, in variant ${variant}`, async (t) => {
      const { settings, verdict } = await startMisbehaving(t, 500, seed);
      assert.equal(await runClient(process.execPath, [CLIENT], { ...settings, SCRIP_VARIANT: variant }), 0);
      const { doubled, unknown, wrong, examples, faults, status } = await verdict();
      assert.deepEqual([doubled, unknown, wrong, status], [0, 0, 0, 0], String(examples));
      for (const fault of FAULTS) assert.ok((faults[fault] ?? 0) > 0, `there was no fault "${fault}"`);
    });
  }
});

/** What a careless client does with a task. @returns the outcome that it reports */
type Careless = (task: Task, redeem: (reference: string) => Promise<Response>) => Promise<string | undefined>;

const isPaid = async (sent: Promise<Response>) => {
  try {
    const { statusCode } = (await (await sent).json()) as { statusCode?: string };
    return statusCode === '00';
  } catch {
    return false;
  }
};

const CARELESS: readonly (readonly [
  name: string,
  found: 'doubled' | 'unknown' | 'wrong',
  client: Careless,
])[] = [
  [
    'repeats a request under another reference',
    'doubled',
    async ({ reference }, redeem) => {
      for (let attempt = 0; attempt < 20; attempt++) {
        if (await isPaid(redeem(`${reference} ${attempt}`))) return 'paid';
      }
      return 'refused';
    },
  ],
  [
    'takes a broken connection for a refusal',
    'wrong',
    async ({ reference }, redeem) => ((await isPaid(redeem(reference))) ? 'paid' : 'refused'),
  ],
  [
    'takes HTTP 200 for a success',
    'wrong',
    async ({ reference }, redeem) => ((await redeem(reference).catch(() => null))?.ok ? 'paid' : 'unknown'),
  ],
  ['gives up without finding out', 'unknown', async () => 'unknown'],
  ['forgets to report', 'unknown', async () => undefined],
];

describe('the misbehaving server', () => {
  for (const [name, found, client] of CARELESS) {
    it(`finds a client that ${name}`, async (t) => {
      const server = await misbehave(200, 7);
      t.after(server.close);
      const { baseUrl, keyId, secret } = server;
      const { tasks } = (await (await fetch(`${baseUrl}/tasks`)).json()) as { tasks: Task[] };
      const outcomes = await Promise.all(
        tasks.map(async (task) => {
          const { code, pin, amount } = task;
          const redeem = (reference: string) =>
            fetch(`${baseUrl}/merchant-client/v2/redeem`, {
              method: 'POST',
              headers: { authorization: `Basic ${btoa(`${keyId}:${secret}`)}` },
              body: JSON.stringify({ code, pin, amount, reference }),
              signal: AbortSignal.timeout(2_000),
            });
          return { reference: task.reference, outcome: await client(task, redeem) };
        }),
      );
      const reported = outcomes.filter(({ outcome }) => outcome !== undefined);
      const body = JSON.stringify(reported);
      const verdict = await (await fetch(`${baseUrl}/outcomes`, { method: 'POST', body })).json();
      assert.ok(((verdict as Record<string, number>)[found] as number) > 0, JSON.stringify(verdict));
    });
  }
});
