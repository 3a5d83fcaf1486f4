import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A client may send a request over a connection before the one before it is answered. Node reads all that has arrived, 64 KB of each
 * connection in a turn of the event loop, which can be a thousand requests: fifty such connections kept everybody else, and the
 * database, waiting for thirteen seconds. So a connection may have so many unanswered; the next one is refused as its last, and what
 * stands behind that is not looked at. A client that keeps connections has one under way on each; benchmarks that pipeline, ten or sixteen.
 */
const MOST_UNANSWERED = 32;
/** A client that does not close its side after the last answer is not waited for any longer. */
const LINGER_MS = 1_000;
/** What the parser is told of a request behind which nothing is to be read: as if the connection were no longer HTTP's. */
const NOTHING_FOLLOWS = 2;

type Line = { unanswered: number; isEnded: boolean; newest: IncomingMessage };

const lines = new WeakMap<Socket, Line>();

/**
 * Whether a request is served, refused as the last one of its connection, or stands behind the last one.
 * @param closing whether the server closes: then whatever comes is served, and is the last one
 */
export function standInLine(
  request: IncomingMessage,
  response: ServerResponse,
  closing: boolean,
): 'served' | 'last' | 'behind' {
  const { socket } = request;
  let line = lines.get(socket);
  if (!line) {
    line = { unanswered: 0, isEnded: false, newest: request };
    lines.set(socket, line);
  }
  if (line.isEnded) return 'behind';
  line.newest = request;
  if (line.unanswered >= MOST_UNANSWERED) {
    line.isEnded = true;
    readNoMore(socket);
    return 'last';
  }
  line.isEnded = closing;
  const own = line;
  own.unanswered++;
  response.once('close', () => own.unanswered--);
  return 'served';
}

/**
 * Ends a connection with the answer to a request, if that is the newest one: whatever came in behind an answer that ends its connection
 * would be worked on, and its answer never sent.
 * @returns whether the answer is to say so
 */
export function endLine(request: IncomingMessage): boolean {
  const line = lines.get(request.socket);
  if (!line) return true;
  if (line.newest !== request) return false;
  line.isEnded = true;
  linger(request.socket);
  return true;
}

/**
 * Ends our side of a connection behind its last answer, and reads on (RFC 9112, 9.6): a client that does not wait for answers sends
 * another request as that one is on its way. Closed by then, the system would refuse it by a reset, at which the client drops what it
 * has not read yet: the answer to a redemption.
 */
function linger(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    const limit = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('end', () => socket.destroy()).once('close', () => clearTimeout(limit));
  };
}

/**
 * No more is read than has been: Node would go on whenever one of the others is answered. And of what has been read, no more is made into
 * requests. Were this to stop working, they are ignored one by one.
 */
function readNoMore(socket: Socket): void {
  socket.pause();
  socket.resume = () => socket;
  const { parser } = socket as { readonly parser?: { onIncoming?: () => number } | null };
  if (parser) parser.onIncoming = () => NOTHING_FOLLOWS;
}
