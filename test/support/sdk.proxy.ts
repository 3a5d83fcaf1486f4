import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/**
 * A bad network between the client and the service: a TCP proxy that applies planned faults to the next
 * requests, and forwards all later ones.
 */

export const FAULTS = [
  /** The connection breaks before the service gets the request. */
  'cut before',
  /** The service has answered, and the connection breaks before the client gets a byte. */
  'cut after',
  /** The connection breaks in the middle of the answer. */
  'cut half',
  /** The service has answered, but the client gets nothing, and times out. */
  'hang',
  /** The request arrives after the next one was answered, long after the client has timed out. */
  'late',
  /** Two copies arrive at the same time; the client gets the answer to the second one. */
  'twice',
  'pass',
] as const;

export type Fault = (typeof FAULTS)[number];

export type Proxy = {
  readonly baseUrl: string;
  /** Sets the faults of the next requests, in their order. */
  plan(faults: readonly Fault[]): void;
  /** The number of requests received. */
  readonly requests: number;
  /** Waits until all delayed requests have reached the service. */
  settle(): Promise<void>;
  /** A fetch that times out at once if a request gets no answer. */
  readonly fetch: typeof fetch;
};

/** Whether a request is complete: its headers, and a body of the announced length. */
function isComplete(request: Buffer): boolean {
  const headEnd = request.indexOf('\r\n\r\n');
  if (headEnd < 0) return false;
  const length =
    /^content-length: *(\d+)/im.exec(request.subarray(0, headEnd).toString('latin1'))?.[1] ?? '0';
  return request.length >= headEnd + 4 + Number(length);
}

function readRequest(client: Socket): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    let request = Buffer.alloc(0);
    client.on('data', (chunk) => {
      request = Buffer.concat([request, chunk]);
      if (isComplete(request)) resolve(request);
    });
    client.on('close', () => resolve(undefined));
    client.on('error', () => resolve(undefined));
  });
}

/** Sends a request on a connection of its own, and waits for the whole answer. */
function forward(port: number, request: Buffer): Promise<Buffer> {
  const once = request.toString('latin1').replace(/^connection: .*$/im, 'connection: close');
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const upstream = connect(port, '127.0.0.1', () => upstream.write(Buffer.from(once, 'latin1')));
    upstream.on('data', (chunk) => chunks.push(chunk));
    upstream.on('end', () => resolve(Buffer.concat(chunks)));
    upstream.on('error', reject);
  });
}

/** Starts a proxy in front of a service, until the test ends. */
export async function startProxy(t: TestContext, target: string): Promise<Proxy> {
  const port = Number(new URL(target).port);
  const clients = new Set<Socket>();
  const running = new Set<Promise<unknown>>();
  let faults: Fault[] = [];
  let late: Buffer[] = [];
  let requests = 0;
  let giveUp = () => {};

  function run<T>(work: Promise<T>): Promise<T> {
    running.add(work);
    work.finally(() => running.delete(work)).catch(() => {});
    return work;
  }

  /** @returns the answer for the client; undefined for none, on a connection that stays open */
  async function treat(fault: Fault, request: Buffer): Promise<Buffer | undefined> {
    if (fault === 'cut before') return Buffer.alloc(0);
    if (fault === 'late') {
      late.push(request);
      return undefined;
    }
    const copies = fault === 'twice' ? [request, request] : [request];
    const answer = (await Promise.all(copies.map((copy) => forward(port, copy)))).at(-1) as Buffer;
    const delayed = late;
    late = [];
    for (const each of delayed) await forward(port, each);
    if (fault === 'hang') return undefined;
    if (fault === 'cut after') return Buffer.alloc(0);
    return fault === 'cut half' ? answer.subarray(0, answer.length - 20) : answer;
  }

  const server = createServer(async (client) => {
    clients.add(client);
    client.on('close', () => clients.delete(client));
    const request = await readRequest(client);
    if (!request) return;
    requests++;
    const answer = await run(treat(faults.shift() ?? 'pass', request));
    if (answer) client.end(answer, () => client.destroySoon());
    else giveUp();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const client of clients) client.destroy();
    server.close();
  });

  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    plan(next) {
      faults = [...next];
    },
    get requests() {
      return requests;
    },
    async settle() {
      while (running.size > 0) await Promise.all(running);
      for (const each of late) await forward(port, each);
      late = [];
    },
    fetch(...request) {
      const silence = new Promise<never>((_resolve, reject) => {
        giveUp = () => reject(new DOMException('there is no answer', 'TimeoutError'));
      });
      return Promise.race([fetch(...request), silence]);
    },
  };
}
