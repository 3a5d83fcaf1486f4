import type { TestContext } from 'node:test';
import { standIn } from './stand-in.ts';

/** A request on its way to the service, which a fault may change. */
type Going = {
  readonly method: string;
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: a fault may change any part of a request.
  body: any;
};

/** An answer on its way back. */
export type Coming = {
  status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a fault may change any part of an answer.
  body: any;
  /** In place of the body. */
  text?: string;
};

export type Fault = { going?(request: Going): void; coming?(answer: Coming, request: Going): void };

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Starts a proxy in front of a service that makes one fault. @returns its address */
export async function breakingProxy(t: TestContext, target: string, fault: Fault): Promise<string> {
  const { url } = await standIn(t, async (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece);
    const raw = Buffer.concat(pieces).toString();
    const request: Going = { method: incoming.method ?? '', path: incoming.url ?? '', body: parse(raw) };
    const before = JSON.stringify(request.body);
    fault.going?.(request);
    const isChanged = JSON.stringify(request.body) !== before;
    const { authorization, 'content-type': type } = incoming.headers;
    const response = await fetch(target + request.path, {
      method: request.method,
      headers: {
        ...(authorization !== undefined && { authorization }),
        ...(type !== undefined && { 'content-type': type }),
      },
      ...(raw !== '' && { body: isChanged ? JSON.stringify(request.body) : raw }),
    });
    const answer: Coming = {
      status: response.status,
      headers: new Headers(response.headers),
      body: parse(await response.text()),
    };
    for (const name of [
      'content-length',
      'content-encoding',
      'connection',
      'keep-alive',
      'transfer-encoding',
    ])
      answer.headers.delete(name);
    fault.coming?.(answer, request);
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
    outgoing.end(answer.text ?? JSON.stringify(answer.body));
  });
  return url;
}
