import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Connections that may wait to be accepted. Where that is too few for a crowd that comes at once, the system drops what it cannot
 * keep, and the client's own system tries again after a second, then three: the slowest answer of all.
 */
const MOST_UNACCEPTED = 4_096;

/**
 * The event loop accepts one connection a turn from each socket that listens. Under load a turn takes milliseconds: with one such
 * socket, 2,000 clients who connect at once wait up to six seconds to be seen, and so does everybody who connects behind them. So
 * there are several on one port, between which the system shares connections out.
 */
const DOORS = 16;

/** Where a server listens. */
type Place = { readonly host: string; readonly port: number };

/**
 * Makes a server listen, through several sockets where the system can have them on one port.
 * @param isAlone whether nobody else accepts for it: one of several processes gets its connections from the first of them
 * @returns the port
 */
export async function listen(app: FastifyInstance, { host, port }: Place, isAlone = true): Promise<number> {
  const doors: Server[] = [];
  const reusePort = isAlone && process.platform === 'linux';
  const shared = { backlog: MOST_UNACCEPTED, ...(reusePort && { reusePort }) };
  if (reusePort) {
    closeWith(app, doors);
    // Each gets its part of the connections, and of what bounds them.
    app.server.maxConnections = Math.ceil(app.server.maxConnections / DOORS);
  }
  await app.listen({ host, port, ...shared });
  const own = app.server.address() as AddressInfo;
  if (!reusePort) return own.port;
  for (let door = 1; door < DOORS; door++) {
    // As node:http makes its own.
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    server.maxConnections = app.server.maxConnections;
    server.on('connection', (socket: Socket) => app.server.emit('connection', socket));
    await once(server.listen({ host: own.address, port: own.port, ...shared }), 'listening');
    doors.push(server);
  }
  return own.port;
}

/** They close in the moment in which the server itself stops listening, and it is closed when their connections are. */
function closeWith(app: FastifyInstance, doors: readonly Server[]): void {
  let closed: Promise<unknown> = Promise.resolve();
  app.addHook('preClose', (done) => {
    closed = Promise.all(doors.map((server) => new Promise((resolve) => server.close(resolve))));
    done();
  });
  app.addHook('onClose', () => closed.then(() => {}));
}
