/**
 * Connections that waste a server's time and memory, in a process of their own:
 * `node bench/crowd.ts URL NAME`. Notifies its parent when all are connected, and runs until it is ended. A
 * connection that is cut is opened again.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const SLOW_BEAT_MS = 50;
/**
 * A refused connection is repeated after this time. Without a pause, the bench would measure the speed of
 * the crowd.
 */
const AGAIN_MS = 20;

const GET = 'GET /api/v2/transactions HTTP/1.1\r\nHost: crowd\r\n';
const POST = 'POST /api/v2/redeem HTTP/1.1\r\nHost: crowd\r\nContent-Type: application/json\r\n';

type Crowd = {
  readonly name: string;
  readonly size: number;
  /** The bytes that each connection sends at once. */
  readonly opening: string;
  /** The bytes that each connection sends piece by piece, every 50 ms. */
  readonly drip?: string;
};

export const CROWDS = {
  idle: { name: '1,000 idle connections', size: 1_000, opening: '' },
  half: { name: '1,000 half-sent requests', size: 1_000, opening: `${POST}Content-Length: 100\r\n\r\n{` },
  slowHeads: { name: '200 heads, a byte at a time', size: 200, opening: `${GET}X-Slow: `, drip: 'x' },
  slowBodies: {
    name: '200 bodies, a byte at a time',
    size: 200,
    opening: `${POST}Content-Length: 60000\r\n\r\n{`,
    drip: ' ',
  },
  heads: { name: '40 floods of header lines', size: 40, opening: GET + 'X-Flood: y\r\n'.repeat(20_000) },
  bodies: {
    name: '40 floods of bodies',
    size: 40,
    opening: `${POST}Transfer-Encoding: chunked\r\n\r\n${`10000\r\n${'x'.repeat(65_536)}\r\n`.repeat(20)}`,
  },
} as const satisfies Record<string, Crowd>;

export type CrowdName = keyof typeof CROWDS;

async function join({ hostname, port }: URL, crowd: Crowd, members: Set<Socket>): Promise<void> {
  const socket = connect(Number(port), hostname).on('error', () => {});
  const connected = once(socket, 'connect');
  members.add(socket);
  socket.resume().on('close', () => {
    members.delete(socket);
    setTimeout(
      () => void join(new URL(`http://${hostname}:${port}`), crowd, members).catch(() => {}),
      AGAIN_MS,
    );
  });
  await connected;
  if (crowd.opening !== '') socket.write(crowd.opening);
}

async function gatherAll(url: URL, crowd: Crowd): Promise<void> {
  const members = new Set<Socket>();
  await Promise.all(Array.from({ length: crowd.size }, () => join(url, crowd, members)));
  const { drip } = crowd;
  if (drip !== undefined) {
    setInterval(() => {
      for (const socket of members) if (socket.writable) socket.write(drip);
    }, SLOW_BEAT_MS);
  }
  process.send?.('there');
}

if (process.argv[1] === import.meta.filename) {
  const [url = '', name = ''] = process.argv.slice(2);
  await gatherAll(new URL(url), CROWDS[name as CrowdName]);
}
