import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { buildServer } from '../../src/http/server.ts';
import { serviceWithoutDatabase } from './harness.ts';

/** Sends bytes as they are over a connection of its own. @returns what comes until it is closed */
export async function exchange(port: number, ...parts: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  for (const part of parts) socket.write(part);
  await once(socket, 'close');
  return text;
}

/** A server without a database, for tests of the HTTP layer alone. */
export async function startBare() {
  const service = serviceWithoutDatabase();
  const app = buildServer(service);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;

  async function call(
    method: string,
    path: string,
    init: { headers?: Record<string, string>; body?: string } = {},
  ) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...init });
    const text = await response.text();
    assert.match(
      response.headers.get('x-request-id') ?? '',
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    assert.equal(response.headers.get('cache-control'), 'no-store');
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : JSON.parse(text),
    };
  }

  /** Sends bytes as they are, and reads until the server closes the connection. */
  async function raw(...parts: string[]): Promise<{ status: number; head: string; body: unknown }> {
    const [head = '', body = ''] = (await exchange(port, ...parts)).split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), head, body: JSON.parse(body) };
  }

  return {
    app,
    call,
    raw,
    async stop() {
      await app.close();
      await service.db.close();
    },
  };
}
