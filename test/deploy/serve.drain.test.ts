import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../soak/process.ts';
import { sql } from '../../src/db/sql.ts';
import { startTestService, type TestService } from '../support/harness.ts';
import { startScrip } from '../support/scrip.ts';
import { until } from '../support/until.ts';

const CLIENTS = 24;

/** Starts a service in a process of its own. */
async function startServe({ url, keys }: TestService) {
  const port = await freePort();
  const settings = {
    SCRIP_DATABASE_URL: url,
    SCRIP_KEYS: keys,
    SCRIP_DATA_DIR: tmpdir(),
    SCRIP_PORT: String(port),
    SCRIP_LOG_LEVEL: 'silent',
    SCRIP_DRAIN_SECONDS: '1',
  };
  const { child, ended } = startScrip(settings, ['serve', '--no-work', '--processes', '1']);
  await until('the service is ready', async () => {
    assert.equal(child.exitCode, null, 'the service ended while it started');
    return (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok;
  });
  return { port, serve: child, ended };
}

/** `answers`: the status code of each reference that was answered. */
type Client = { readonly answers: Map<string, string>; readonly refused: Promise<void> };

/**
 * Redeems until the service refuses connections. Each connection is used until it is closed, with
 * `window` unanswered requests at a time.
 */
function redeemUntilRefused(
  port: number,
  window: number,
  requestFor: (reference: string) => string,
  name: string,
): Client {
  const answers = new Map<string, string>();
  let number = 0;
  const overOneConnection = async (): Promise<boolean> => {
    const socket = connect(port, '127.0.0.1');
    let wasRefused = false;
    const sent: string[] = [];
    let text = '';
    let isLast = false;
    const send = () => {
      const reference = `${name}-${number++}`;
      sent.push(reference);
      socket.write(requestFor(reference));
    };
    socket.on('error', (error: NodeJS.ErrnoException) => {
      wasRefused = error.code === 'ECONNREFUSED';
    });
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      // An overloaded service also answers with other codes than 00.
      const [first = '', ...parts] = `${text}${chunk}`.split(/"statusCode":"(\d\d)"/);
      for (let index = 0; index < parts.length; index += 2)
        answers.set(sent.shift() ?? assert.fail('an answer without a request'), parts[index] as string);
      // The text after the last answer may be the first half of the next one.
      text = parts.at(-1) ?? first;
      // A client that waits for each answer learns from it that it is the last one.
      isLast ||= window === 1 && /\r\nconnection: close\r\n/i.test(chunk);
      while (!isLast && socket.writable && sent.length < window) send();
    });
    while (sent.length < window) send();
    // `once` would fail if the connection is reset, which only leaves its requests unanswered.
    await new Promise((resolve) => socket.on('close', resolve));
    return wasRefused;
  };
  const run = async () => {
    while (!(await overOneConnection()));
  };
  return { answers, refused: run() };
}

for (const [window, name] of [
  [1, 'one request at a time'],
  [4, 'four requests at a time, without waiting for answers'],
] as const) {
  test(`a service that is stopped under load answers everything that it has booked: ${name}`, async (t) => {
    const testService = await startTestService();
    t.after(testService.stop);
    const { authorization } = await testService.createMerchant();
    const { port, serve, ended } = await startServe(testService);
    const headers = { authorization, 'content-type': 'application/json' };
    const init = {
      method: 'POST',
      headers,
      body: JSON.stringify({ reference: 'x', quantity: 10, value: 1_000 }),
    };
    const { data } = (await (await fetch(`http://127.0.0.1:${port}/api/v2/vouchers`, init)).json()) as {
      data: { vouchers: { code: string; pin: string }[] };
    };
    const head =
      `POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n` +
      'Content-Type: application/json\r\n';
    const clients = Array.from({ length: CLIENTS }, (_, client) => {
      const { code, pin } = data.vouchers[client % data.vouchers.length] ?? assert.fail();
      const requestFor = (reference: string) => {
        const body = JSON.stringify({ voucherCode: code, pin, amount: 0.01, reference });
        return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
      };
      return redeemUntilRefused(port, window, requestFor, `till ${client}`);
    });
    while (clients.some(({ answers }) => answers.size < 10)) await sleep(10);
    serve.kill('SIGTERM');
    await Promise.all(clients.map(({ refused }) => refused));
    assert.equal((await ended).status, 0);
    const booked = await testService.service.db.query<{ reference: string }>(
      sql`select reference from journal where kind = 'REDEMPTION'`,
    );
    const answers = new Map(clients.flatMap((client) => [...client.answers]));
    const references = new Set(booked.map(({ reference }) => reference));
    const unanswered = [...references].filter((reference) => !answers.has(reference));
    const unbooked = [...answers].filter(([reference, code]) => code === '00' && !references.has(reference));
    assert.deepEqual({ unanswered, unbooked }, { unanswered: [], unbooked: [] });
  });
}
