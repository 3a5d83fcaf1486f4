import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A client may send a request over a connection before the one before it is answered. Node reads all that has arrived, 64 KB of each
 * connection in a turn of the event loop, which can be a thousand requests: fifty such connections kept everybody else, and the
 * database, waiting for thirteen seconds. So a connection may have so many unanswered; the next one is refused as its last, and what
 * stands behind that is not looked at. A client that keeps connections has one under way on each; benchmarks that pipeline, ten or sixteen.
 */
const MOST_UNANSWERED = 32;
/** What the parser is told of a request behind which nothing is to be read: as if the connection were no longer HTTP's. */
const NOTHING_FOLLOWS = 2;

type Line = { unanswered: number; isEnded: boolean };

const lines = new WeakMap<Socket, Line>();

/** Whether a request is served, refused as the last one of its connection, or stands behind that one. */
export function standInLine({ socket }: IncomingMessage, response: ServerResponse): 'served' | 'last' | 'behind' {
  let line = lines.get(socket);
  if (!line) {
    line = { unanswered: 0, isEnded: false };
    lines.set(socket, line);
  }
  if (line.isEnded) return 'behind';
  if (line.unanswered >= MOST_UNANSWERED) {
    line.isEnded = true;
    readNoMore(socket);
    return 'last';
  }
  const own = line;
  own.unanswered++;
  response.once('close', () => own.unanswered--);
  return 'served';
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
