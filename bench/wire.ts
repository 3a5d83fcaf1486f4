import { connect, type Socket } from 'node:net';

/**
 * A client that costs almost nothing beside the service that it measures: it writes prepared requests
 * (requests.ts), and parses an answer only to find its end.
 */

/** The answer: the head as text, and the body. */
export type WireAnswer = { readonly status: number; readonly head: string; readonly body: string };

type Waiting = { readonly resolve: (answer: WireAnswer) => void; readonly reject: (error: Error) => void };

const HEAD_END = '\r\n\r\n';

/** One connection, kept alive, with one request at a time. */
export class Wire {
  readonly #socket: Socket;
  #text = '';
  #waiting: Waiting | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true).setEncoding('latin1');
    socket.on('data', (chunk: string) => this.#read(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the connection was closed')));
  }

  static open(url: string): Promise<Wire> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new Wire(socket));
      });
    });
  }

  /** Sends a request and waits for its answer. */
  ask(request: string): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) {
        reject(new Error('the connection was closed'));
        return;
      }
      this.#waiting = { resolve, reject };
      this.#socket.write(request, 'latin1');
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: string): void {
    this.#text = this.#text === '' ? chunk : this.#text + chunk;
    const end = this.#text.indexOf(HEAD_END);
    if (end < 0) return;
    const length = Number(/content-length: *(\d+)/i.exec(this.#text.slice(0, end))?.[1] ?? 0);
    const whole = end + HEAD_END.length + length;
    if (this.#text.length < whole) return;
    const head = this.#text.slice(0, end);
    const body = this.#text.slice(end + HEAD_END.length, whole);
    this.#text = this.#text.slice(whole);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    // The status follows `HTTP/1.1 `.
    waiting?.resolve({ status: Number(head.slice(9, 12)), head, body });
  }

  #fail(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(error);
  }
}
