import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Service } from '../context.ts';
import type { Refusal } from '../refusal.ts';
import { BatchVoucher } from './batch.ts';
import { prefersGzip } from './encoding.ts';
import type { Answer, Dialect } from './endpoint.ts';
import { outcomeOf, refusalText } from './envelope.ts';
import { valueErrors } from './field-errors.ts';
import { drain, TransportRefusal, toRefusal } from './transport.ts';

const SUCCESS = { statusCode: '00', message: 'Success' } as const;
const JSON_TYPE = 'application/json; charset=utf-8';

/** Up to here the vouchers of a batch are answered in one piece. */
const ONE_PIECE = 10;

/** How much of a download waits in memory for a slow client. */
const STREAM_BUFFER_BYTES = 64 * 1024;

/** Codes are random digits: a higher level takes three times the work for the last tenth. */
const GZIP_LEVEL = 1;

type Row = Record<string, unknown>;

/** How a server tells refusals: by a dialect's statuses and with the fields of an endpoint, or outside every dialect. */
type Manner = {
  readonly statuses?: Dialect['statuses'];
  readonly notFound?: string | undefined;
  readonly fields?: readonly string[];
};

/** Sends what an endpoint answered, as its schema writes it. */
export async function sendAnswer(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  { data, replayed, outcome, vouchers }: Answer<never>,
): Promise<FastifyReply> {
  const { statusCode, message } = outcome ?? SUCCESS;
  request.trace.statusCode = statusCode;
  request.trace.transactionId = transactionIdOf(data);
  if (replayed) reply.header('idempotent-replayed', 'true');
  if (data === null) return reply.type(JSON_TYPE).send(refusalText(statusCode, message));
  const body = { statusCode, message, data };
  if (!vouchers) return reply.send(body);

  const serialize = reply.getSerializationFunction('200') as (body: unknown) => string;
  const serializeVoucher = reply.compileSerializationSchema(BatchVoucher as unknown as Row);
  const parts = voucherParts(serialize(body), serializeVoucher, vouchers.pages);
  reply.type(JSON_TYPE);
  if (vouchers.quantity <= ONE_PIECE) return reply.send(await Array.fromAsync(parts).then((all) => all.join('')));
  // The first part is there before the status is sent: a database that is down is still told as such.
  const first = await parts.next();
  return reply.send(stream(service, request, reply, first.value ?? '', parts));
}

/** By which the journal knows what an answer tells of; of an update that is its reversal, which names the original. */
function transactionIdOf(data: unknown): string | undefined {
  const { transactionId, cancellationTransaction } = (data ?? {}) as {
    readonly transactionId?: string;
    readonly cancellationTransaction?: { readonly transactionId: string };
  };
  return transactionId ?? cancellationTransaction?.transactionId;
}

/** The text of a batch with its vouchers: what stands before them, a part for each page, and the end. */
async function* voucherParts(
  head: string,
  serialize: (voucher: Row) => string,
  pages: AsyncGenerator<Row[]>,
): AsyncGenerator<string, undefined> {
  // `{…,"data":{…}}` is opened again to take the list in; `vouchers` is the last property of its schema.
  let before = `${head.slice(0, -2)},"vouchers":[`;
  for await (const page of pages) {
    if (page.length === 0) continue;
    yield before + page.map((voucher) => serialize(voucher)).join(',');
    before = ',';
  }
  yield before === ',' ? ']}}' : `${before}]}}`;
}

/**
 * Sends parts as fast as the client takes them, compressed where it asks for that. An error in the middle breaks the connection off,
 * and is logged.
 */
function stream(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  first: string,
  parts: AsyncGenerator<string, undefined>,
): Readable {
  async function* all() {
    yield first;
    yield* parts;
  }
  const readable = Readable.from(all(), { objectMode: false, highWaterMark: STREAM_BUFFER_BYTES });
  readable.once('error', (error: NodeJS.ErrnoException) => {
    // A client that goes away is none of our faults; behind a compressor it looks like one.
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    service.log.error({ requestId: request.id, err: error }, 'a download broke off');
  });
  reply.raw.once('close', () => {
    // A generator that was never entered would not tell its source to stop.
    parts.return(undefined).catch(() => {});
  });
  reply.header('vary', 'accept-encoding');
  if (!prefersGzip(request.headers['accept-encoding'])) return readable;
  reply.header('content-encoding', 'gzip');
  // An error destroys the compressor too, before it has written its end: what arrived is not a whole document.
  return pipeline(readable, createGzip({ level: GZIP_LEVEL }), () => {});
}

/**
 * Sends the refusal behind whatever was thrown; a bug is logged and told as `96`.
 * A client that is still sending its body gets the answer once it has stopped: a connection that is closed while data
 * arrives on it is reset, and the answer lost.
 */
export function sendRefusal(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
  { statuses, notFound, fields = [] }: Manner,
): void {
  const refusal = toRefusal(error, request.raw.errored === null);
  if (!refusal) service.log.error({ requestId: request.id, err: error }, 'a request failed');
  const { statusCode, message } = outcomeOf(refusal, notFound);
  request.trace.statusCode = statusCode;
  reply.code(httpStatusOf(refusal, statuses)).type(JSON_TYPE);
  // A download that failed before its first bytes were sent is told plainly.
  reply.removeHeader('content-encoding');
  setRefusalHeaders(reply, refusal);
  // Only `58` carries data: the first update's result, rendered by the endpoint and written by its schema.
  const text =
    refusal?.data === undefined
      ? refusalText(statusCode, message, refusal && (refusal.errors ?? valueErrors(refusal.code, fields)))
      : reply.serializeInput({ statusCode, message, data: refusal.data }, '200');
  if (request.raw.complete !== false) reply.send(text);
  else {
    drain(request.raw, () => {
      if (!request.raw.complete) reply.header('connection', 'close');
      reply.send(text);
    });
  }
}

function httpStatusOf(refusal: Refusal | undefined, statuses: Dialect['statuses'] | undefined): number {
  if (!refusal) return 500;
  if (refusal instanceof TransportRefusal) return refusal.httpStatus;
  if (refusal.code === '91') return 503;
  return statuses?.[refusal.code] ?? 400;
}

function setRefusalHeaders(reply: FastifyReply, refusal: Refusal | undefined): void {
  if (!refusal) return;
  if (refusal.code === '01') reply.header('www-authenticate', 'Basic');
  if (refusal instanceof TransportRefusal && refusal.allow) reply.header('allow', refusal.allow);
  const wait = refusal.retryAfterSeconds ?? (refusal.code === '91' || refusal.code === '97' ? 1 : undefined);
  if (wait !== undefined) reply.header('retry-after', String(Math.max(1, Math.ceil(wait))));
}
