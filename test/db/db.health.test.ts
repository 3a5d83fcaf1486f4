import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { Health } from '../../src/db/health.ts';

/** A server whose connections answer only once it is back. */
class Server {
  readonly #back = Promise.withResolvers<void>();

  open(): pg.Client {
    const answer = () => this.#back.promise;
    return { on: () => {}, connect: answer, query: answer, end: async () => {} } as unknown as pg.Client;
  }

  comeBack(): void {
    this.#back.resolve();
  }
}

test('a short outage fails a statement that a call waits for, and does not fail a long report', async (t) => {
  const server = new Server();
  const health = new Health(() => server.open());
  t.after(() => health.close());
  const report = Promise.withResolvers<string>();
  const reading = health.track(() => report.promise, true);

  await assert.rejects(
    health.track(() => new Promise(() => {})),
    { code: 'ETIMEDOUT' },
  );
  assert.throws(() => health.check(), { code: 'ETIMEDOUT' }, 'the server counts as away');

  server.comeBack();
  report.resolve('read');
  assert.equal(await reading, 'read');
});

test('background work starts and continues during a short outage', async (t) => {
  const server = new Server();
  const probed = Promise.withResolvers<void>();
  const open = () => {
    probed.resolve();
    return server.open();
  };
  const health = new Health(open, true);
  t.after(() => health.close());
  const begun = Promise.withResolvers<string>();
  const going = health.track(() => begun.promise);

  await probed.promise;
  health.check();
  server.comeBack();
  begun.resolve('done');
  assert.equal(await going, 'done');
});
