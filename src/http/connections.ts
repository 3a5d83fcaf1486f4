import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { type Logger, onceAMinute } from '../log.ts';
import { containing, networkOf, readNetwork } from '../network.ts';

/**
 * Shares the connections of the server among addresses. An address that opens more than its share loses its
 * oldest connection that sends nothing, and the same happens to all addresses together. A connection whose
 * request is being answered is never closed. So a crowd of silent connections, even from the address of a
 * till, does not keep the till out.
 */

/** Far more than a process can serve at once; a bound on memory. */
const CONNECTIONS_MAX = 10_000;
/** The share of an address; of an IPv6 address, the share of its first 64 bits. Proxies have no limit. */
const OF_ADDRESS_MAX = 2_500;
/** The most busy connections that are searched for one whose request has not arrived yet. */
const SEARCHED_MAX = 16;

/**
 * Connections in the order in which they are closed: without any request, between two requests, and during
 * one.
 */
class Held {
  /** No request has begun. */
  readonly silent = new Set<Socket>();
  /** The last request was answered. */
  readonly idle = new Set<Socket>();
  /** Each with its last request, whose body may still be arriving. */
  readonly busy = new Map<Socket, IncomingMessage>();

  get size(): number {
    return this.silent.size + this.idle.size + this.busy.size;
  }

  delete(socket: Socket): void {
    this.silent.delete(socket);
    this.idle.delete(socket);
    this.busy.delete(socket);
  }

  begin(socket: Socket, request: IncomingMessage): void {
    this.delete(socket);
    this.busy.set(socket, request);
  }

  /** Ends a request, unless another one has followed on its connection. */
  end(socket: Socket, request: IncomingMessage): void {
    if (this.busy.get(socket) !== request) return;
    this.busy.delete(socket);
    this.idle.add(socket);
  }

  /** Returns the connection that is closed first; undefined if all of them are being answered. */
  oldest(): Socket | undefined {
    const [silent] = this.silent;
    return silent ?? this.#receiving() ?? [...this.idle.values().take(1)][0];
  }

  #receiving(): Socket | undefined {
    const [found] = this.busy
      .entries()
      .take(SEARCHED_MAX)
      .find(([, request]) => !request.complete) ?? [undefined];
    return found;
  }
}

/**
 * Limits the connections of a server.
 * @param trustedProxies networks whose addresses stand for many clients
 */
export function limitConnections(
  server: Server,
  log: Logger,
  trustedProxies: readonly string[],
  { all: allMax, ofAddress } = { all: CONNECTIONS_MAX, ofAddress: OF_ADDRESS_MAX },
): void {
  const isProxy = containing(trustedProxies.flatMap((each) => readNetwork(each) ?? []));
  const all = new Held();
  const byNetwork = new Map<string, Held>();
  /** To find the connections of an address at each request, without reading the address again. */
  const ownOf = new WeakMap<Socket, Held>();
  const report = reporter(log);
  // Only if nothing can be closed does Node refuse further ones.
  server.maxConnections = allMax + SEARCHED_MAX;

  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const network = networkOf(address);
    const own = byNetwork.get(network) ?? new Held();
    byNetwork.set(network, own);
    const makeRoom = (held: Held, max: number): boolean => {
      if (held.size < max) return true;
      const closed = held.oldest();
      report(network);
      closed?.destroy();
      return closed !== undefined;
    };
    const hasRoom = (isProxy(address) || makeRoom(own, ofAddress)) && makeRoom(all, allMax);
    if (!hasRoom) {
      socket.destroy();
      return;
    }
    for (const held of [all, own]) held.silent.add(socket);
    ownOf.set(socket, own);
    socket.once('close', () => {
      for (const held of [all, own]) held.delete(socket);
      if (own.size === 0) byNetwork.delete(network);
    });
  });

  server.on('request', (request, response) => {
    const { socket } = request;
    const own = ownOf.get(socket);
    all.begin(socket, request);
    own?.begin(socket, request);
    response.once('close', () => {
      all.end(socket, request);
      own?.end(socket, request);
    });
  });
}

/** Logs that connections were closed, with how many since the last line. */
function reporter(log: Logger): (network: string) => void {
  const due = onceAMinute();
  return (network) => {
    const closed = due();
    if (closed > 0)
      log.warn({ network, closed }, 'connections that send nothing were closed: there are too many');
  };
}
