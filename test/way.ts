import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** The way to the database, which a test can cut and mend. */
export async function startWay(t: TestContext, to: URL) {
  const sockets = new Set<Socket>();
  const state = { open: true, silent: false };
  const server = createServer((near) => {
    sockets.add(near);
    near.on('error', () => {}).on('close', () => sockets.delete(near));
    if (!state.open) return void near.destroy();
    const far = connect(Number(to.port || 5432), to.hostname);
    sockets.add(far);
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
    near.on('close', () => far.destroy());
    near.pipe(far);
    far.on('data', (data) => state.silent || near.write(data));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(() => {
    cut();
    server.close();
  });
  const url = new URL(to);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return { url: url.href, state, cut };
}
