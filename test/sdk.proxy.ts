import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/**
 * A bad network between the client and the service: a TCP proxy that treats each request as its plan
 * says, and passes on what comes after the plan.
 */

export const FAULTS = [
  /** The connection breaks before the service got anything. */
  'cut before',
  /** The service has answered, and the connection breaks before a byte of it is told. */
  'cut after',
  /** The connection breaks in the middle of the answer. */
  'cut half',
  /** The service has answered, and nobody is told: the client gives up by itself. */
  'hang',
  /** The request arrives after the next one was answered, when the client has long given up. */
  'late',
  /** Two copies arrive at the same time; the client is told what the second one got. */
  'twice',
  'pass',
] as const;

export type Fault = (typeof FAULTS)[number];

export type Proxy = {
  readonly baseUrl: string;
  /** What happens to the next requests, in their order. */
  plan(faults: readonly Fault[]): void;
  /** How many requests came in. */
  readonly requests: number;
  /** Waits until everything that was kept back has reached the service. */
  settle(): Promise<void>;
  /** A fetch that gives up, as at the end of its time, once a request of the client gets no answer. */
  readonly fetch: typeof fetch;
};

/** A request that is complete: the headers, and as much body as they announce. */
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

/** A proxy before a service, until the test ends. */
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

  /** What the client is told; undefined for nothing, on a connection that stays open. */
  async function treat(fault: Fault, request: Buffer): Promise<Buffer | undefined> {
    if (fault === 'cut before') return Buffer.alloc(0);
    if (fault === 'late') {
      late.push(request);
      return undefined;
    }
    const copies = fault === 'twice' ? [request, request] : [request];
    const answer = (await Promise.all(copies.map((copy) => forward(port, copy)))).at(-1) as Buffer;
    const kept = late;
    late = [];
    for (const each of kept) await forward(port, each);
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
        giveUp = () => reject(new DOMException('nothing is answered', 'TimeoutError'));
      });
      return Promise.race([fetch(...request), silence]);
    },
  };
}
