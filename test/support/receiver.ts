import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';

/** A receiver of webhooks. A test sets its answer. */

export type Received = {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests check what a delivery holds.
  readonly body: any;
};

type Behave = (response: ServerResponse, received: Received) => void;

export class Receiver {
  readonly received: Received[] = [];
  /** The number of connections, including those without a request. */
  connections = 0;
  behave: Behave = (response) => response.end();
  readonly #server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const received = { headers: request.headers, text, body: JSON.parse(text) };
    this.received.push(received);
    this.behave(response, received);
  });
  url = '';

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.on('connection', () => receiver.connections++);
    await once(receiver.#server.listen(0, '127.0.0.1'), 'listening');
    receiver.url = `http://127.0.0.1:${(receiver.#server.address() as AddressInfo).port}/hook`;
    return receiver;
  }

  /** Answers every delivery with a status. */
  answer(status: number, headers: Record<string, string> = {}): void {
    this.behave = (response) => response.writeHead(status, headers).end();
  }

  /** Waits until `count` deliveries have arrived. */
  async has(count: number): Promise<Received[]> {
    while (this.received.length < count) await sleep(10);
    return this.received;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Verifies a delivery with the published verifier. @throws if the signature is wrong */
export function verify({ text, headers }: Received, secret: string): unknown {
  return new Webhook(secret).verify(text, headers as Record<string, string>);
}
