import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { signWebhook, verifyWebhook, WebhookVerificationError } from '../webhook.ts';
import type { WebhookEvent, WebhookEventType } from '../webhook-events.ts';
import { CONNECTION, type Command, fail, type Line, wrongUsage } from './command.ts';
import { EVENTS } from './events.ts';
import { pull } from './pull.ts';
import { untilStopped } from './session.ts';
import { clean, printJson, say, write } from './terminal.ts';

/** Webhooks on a developer's machine: receive and forward those of a service, and send examples. */

const PORT = 4242;
const PORT_MAX = 65_535;
const BODY_MAX_BYTES = 4 * 1024 * 1024;
/** The service waits this long for an answer as well. */
const FORWARD_TIMEOUT_MS = 15_000;
const PASSED_ON = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;

const FORWARD_TO = { value: 'URL', summary: 'the address of your receiver', required: true } as const;
const SECRET_HINT = 'SCRIP_WEBHOOK_SECRET';

export const LISTEN: Command = {
  name: 'listen',
  args: [],
  summary: 'receive webhooks on this machine, show them, and forward them to your receiver',
  details: `Add the address that it prints as an endpoint: \`scrip webhook add --merchant ID --url URL\`. The
service must permit private addresses (SCRIP_WEBHOOK_ALLOW_PRIVATE=true, or a sandbox). With the secret of
the endpoint in ${SECRET_HINT}, deliveries are verified first.
With --pull, it reads the events of an endpoint without an address (\`scrip webhook add --merchant ID
--pull\`), with SCRIP_BASE_URL and SCRIP_PORTAL_TOKEN (role developer). Your receiver gets each event until it
answers 2xx. With the secret of the endpoint in ${SECRET_HINT}, they are signed.`,
  options: {
    'forward-to': FORWARD_TO,
    port: { value: 'PORT', summary: `the port to listen at (default: ${PORT})` },
    pull: { summary: 'read events instead, from any machine' },
    cursor: { value: 'FILE', summary: 'with --pull: where it stores how far it has read' },
    endpoint: { value: 'ID', summary: 'with --pull: the endpoint, if there are several without an address' },
    'base-url': CONNECTION['base-url'],
    credentials: CONNECTION.credentials,
    json: { summary: 'print one JSON document for each event' },
  },
  async run(line) {
    const target = targetOf(line);
    const secret = process.env[SECRET_HINT] || undefined;
    const isJson = line.has('json');
    if (line.has('pull')) {
      return pull(line, secret, async ({ id, type, body, headers }) => {
        const status = await send(target, body, headers);
        await show({ id, type, status, isJson });
        return isTaken(status);
      });
    }
    const port = portOf(line);
    const server = createServer((request, response) => {
      void receive(request, response, { target, secret, isJson });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    }).catch((error: NodeJS.ErrnoException) =>
      fail(
        error.code === 'EADDRINUSE' ? `port ${port} is in use: name another one with --port` : error.message,
      ),
    );
    const { port: bound } = server.address() as { port: number };
    say(
      `listening at http://127.0.0.1:${bound}/, forwarding to ${target.href}${secret ? '' : '; not verifying'}`,
    );
    await untilStopped();
    server.closeAllConnections();
    server.close();
  },
};

export const TRIGGER: Command = {
  name: 'trigger',
  args: ['EVENT'],
  summary: 'send an example of an event to your receiver, signed as the service signs it',
  details: `EVENT is one of ${Object.keys(EVENTS).join(', ')}.
The secret comes from ${SECRET_HINT}; any whsec_ and base64 will do that your receiver verifies with.`,
  options: {
    'forward-to': FORWARD_TO,
    json: { summary: 'print one JSON document on stdout, and nothing else' },
  },
  async run(line) {
    const type = line.args[0] ?? '';
    if (!Object.hasOwn(EVENTS, type)) wrongUsage(`EVENT must be one of ${Object.keys(EVENTS).join(', ')}`);
    const target = targetOf(line);
    const secret =
      process.env[SECRET_HINT] || wrongUsage(`set ${SECRET_HINT} to the secret of your receiver`);
    const event = { type, timestamp: new Date().toISOString(), data: EVENTS[type as WebhookEventType]() };
    const body = JSON.stringify(event);
    const headers = await signWebhook(body, secret).catch((error: Error) => fail(error.message));
    const status = await send(target, body, { 'content-type': 'application/json', ...headers });
    if (typeof status === 'string') fail(`${target.href} did not answer: ${status}`);
    if (line.has('json')) return printJson({ id: headers['webhook-id'], type, status });
    await write(`${type} ${headers['webhook-id']} was answered ${status}\n`);
    if (!isTaken(status)) fail('the service would send this event again: it takes only 2xx for delivered');
  },
};

function targetOf(line: Line): URL {
  const text = line.text('forward-to') ?? '';
  // People write `localhost:3000/hook`.
  const url = URL.parse(/^https?:\/\//.test(text) ? text : `http://${text}`);
  return url ?? wrongUsage('--forward-to must be an address such as http://localhost:3000/webhooks');
}

function portOf(line: Line): number {
  const text = line.text('port');
  if (text === undefined) return PORT;
  if (!/^\d{1,5}$/.test(text) || Number(text) > PORT_MAX)
    wrongUsage('--port must be a whole number up to 65535');
  return Number(text);
}

type Receiving = { readonly target: URL; readonly secret: string | undefined; readonly isJson: boolean };

/** Answers the service as the receiver answered, so that its retries can be tried out too. */
async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  { target, secret, isJson }: Receiving,
): Promise<void> {
  const answer = (status: number) => response.writeHead(status).end();
  const body = await readBody(request);
  if (body === undefined) return void answer(413);
  const headers = Object.fromEntries(PASSED_ON.map((name) => [name, String(request.headers[name] ?? '')]));
  let event: Partial<WebhookEvent>;
  try {
    event = secret === undefined ? JSON.parse(body) : await verifyWebhook(body, request.headers, secret);
  } catch (error) {
    say(error instanceof WebhookVerificationError ? error.message : 'what came was no event');
    return void answer(400);
  }
  const status = await send(target, body, headers);
  await show({ id: headers['webhook-id'] ?? '', type: String(event.type), status, isJson });
  answer(typeof status === 'number' ? status : 502);
}

const isTaken = (status: number | string) => typeof status === 'number' && status >= 200 && status < 300;

type Shown = {
  readonly id: string;
  readonly type: string;
  readonly status: number | string;
  readonly isJson: boolean;
};

/** Shows an event, and what the receiver answered. */
async function show({ id, type, status, isJson }: Shown): Promise<void> {
  if (isJson) await printJson({ id, type, status: typeof status === 'number' ? status : null });
  else await write(`${clean(type)}  ${clean(id)}  → ${status}\n`);
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > BODY_MAX_BYTES) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** @returns the status of the answer, or the reason why there is none */
async function send(target: URL, body: string, headers: Record<string, string>): Promise<number | string> {
  try {
    const signal = AbortSignal.timeout(FORWARD_TIMEOUT_MS);
    const response = await fetch(target, { method: 'POST', body, headers, redirect: 'manual', signal });
    await response.body?.cancel();
    return response.status;
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } };
    return cause?.code ?? message;
  }
}
