import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { testService } from '../support/harness.ts';
import { Till } from '../support/till.ts';

const IDLE = 1_000;
const SLOW = 200;
const FLOODS = 40;

test('a redemption succeeds beside a crowd of idle, slow, incomplete and flooding connections', async (t) => {
  const listening = await testService(t);
  const till = await Till.another(listening);
  const voucher = await till.voucher();
  const port = Number(new URL(listening.baseUrl).port);
  const sockets: Socket[] = [];
  const open = async (bytes: string) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(bytes);
    return socket.resume();
  };
  await Promise.all(Array.from({ length: IDLE }, () => open('')));
  // Heads and bodies that never end, sent byte by byte.
  const slow = await Promise.all(
    Array.from({ length: SLOW }, (_, number) =>
      open(
        number % 2 === 0
          ? 'GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\nX-Slow: '
          : 'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{',
      ),
    ),
  );
  const drip = setInterval(() => {
    for (const socket of slow) if (socket.writable) socket.write(' ');
  }, 50);
  // Without this, a server that closes would wait for each of them.
  const leave = () => {
    clearInterval(drip);
    for (const socket of sockets) socket.destroy();
  };
  t.signal.addEventListener('abort', leave);
  // Heads and bodies that are too long, and clients that disconnect before their answer.
  const head = `GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\n${'X-Flood: y\r\n'.repeat(50_000)}`;
  const body = `POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${`10000\r\n${'x'.repeat(65_536)}\r\n`.repeat(40)}`;
  await Promise.all(Array.from({ length: FLOODS }, (_, number) => open(number % 2 === 0 ? head : body)));
  for (const socket of await Promise.all(
    Array.from({ length: SLOW }, () => open('GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\n\r\n')),
  ))
    socket.resetAndDestroy();
  for (let sale = 1; sale <= 10; sale++) {
    await till.done({
      method: 'POST',
      path: '/api/v2/redeem',
      body: { voucherCode: voucher.code, pin: voucher.pin, amount: 1, reference: `sale-${sale}` },
    });
    await sleep(20);
  }
  assert.equal(await till.balanceOf(voucher), 15);
  assert.equal((await fetch(`${listening.baseUrl}/readyz`)).status, 200);
  leave();
});
