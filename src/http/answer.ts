import type { IncomingMessage } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { type Batch, batchData } from '../batches/batch.ts';
import { readVouchers } from '../batches/export.ts';
import type { Context, Service } from '../context.ts';
import { isUnavailable } from '../db/errors.ts';
import { toNumber } from '../money.ts';
import { Refusal } from '../refusal.ts';
import type { VoucherBalance } from '../vouchers/balance.ts';
import { type Answer, bodyText, type Dialect, outcomeOf } from './endpoint.ts';
import { valueErrors } from './field-errors.ts';
import { type BatchData, BatchVoucher } from './fields.ts';
import { bodyTooLarge, notJson, prefersGzip, TransportRefusal } from './wire.ts';

const SUCCESS = { statusCode: '00', message: 'Success' } as const;
export const JSON_TYPE = 'application/json; charset=utf-8';

/** The largest batch that is sent in one piece, with a Content-Length. */
const WHOLE_VOUCHERS_MAX = 10;
/** The most bytes of a download that are held in memory for a slow client. */
const STREAM_BUFFER_BYTES = 64 * 1024;
/** Codes are random digits: a higher level takes three times as long to save the last tenth. */
const GZIP_LEVEL = 1;
/** Seconds after which a client may try again when the service is full, or has no database. */
const RETRY_AFTER_SECONDS = 1;

type Row = Record<string, unknown>;

/**
 * How refusals are reported: with the statuses of a dialect and the fields of an endpoint, or, for an unknown
 * path, without either.
 */
type Rendering = {
  readonly statuses?: Dialect['statuses'];
  readonly notFound?: string | undefined;
  readonly fields?: readonly string[];
};

/** Sends the result of an endpoint, serialized according to its schema. */
export async function sendAnswer(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  { data, replayed, outcome, vouchers }: Answer<never>,
): Promise<FastifyReply> {
  const { statusCode, message } = outcome ?? SUCCESS;
  request.trace.statusCode = statusCode;
  const transactionId = transactionIdOf(data);
  request.trace.transactionId = transactionId;
  if (transactionId && request.method === 'POST' && !replayed) {
    renameRequest(request, reply, transactionId);
    service.readiness.booked();
  }
  service.readiness.served();
  reply.type(JSON_TYPE);
  if (replayed) reply.header('idempotent-replayed', 'true');
  if (data === null) return reply.send(bodyText(statusCode, message));
  const body = { statusCode, message, data };
  if (!vouchers) return reply.send(body);

  const serialize = reply.getSerializationFunction('200') as (body: unknown) => string;
  const serializeVoucher = reply.compileSerializationSchema(BatchVoucher as unknown as Row);
  const parts = voucherParts(serialize(body), serializeVoucher, vouchers.pages);
  if (vouchers.quantity <= WHOLE_VOUCHERS_MAX) return reply.send((await Array.fromAsync(parts)).join(''));
  // The first part is read before the status is sent, so that 503 is still possible if the database is down.
  const readable = await begun(parts);
  if (request.method === 'HEAD') await parts.return(undefined);
  return reply.send(encoded(service, request, reply, readable));
}

/**
 * Gives a request that booked something the id of its transaction, under which it is found later
 * (src/operations/requests.ts). Nothing has to be stored for it.
 */
export function renameRequest(request: FastifyRequest, reply: FastifyReply, id: string): void {
  request.id = id;
  reply.header('x-request-id', id);
}

/**
 * Returns the transaction id of an answer, for the access log. For an update it is the id of the reversal,
 * which refers to the original.
 */
function transactionIdOf(data: unknown): string | undefined {
  const { transactionId, cancellationTransaction } = (data ?? {}) as {
    readonly transactionId?: string;
    readonly cancellationTransaction?: { readonly transactionId: string };
  };
  return transactionId ?? cancellationTransaction?.transactionId;
}

/** Yields the text of a batch with its vouchers: the beginning, a part for each page, and the end. */
async function* voucherParts(
  head: string,
  serialize: (voucher: Row) => string,
  pages: AsyncGenerator<Row[]>,
): AsyncGenerator<string, undefined> {
  // `{…,"data":{…}}` is reopened to insert the list; `vouchers` is the last property of its schema.
  let before = `${head.slice(0, -2)},"vouchers":[`;
  for await (const page of pages) {
    if (page.length === 0) continue;
    yield before + page.map((voucher) => serialize(voucher)).join(',');
    before = ',';
  }
  yield before === ',' ? ']}}' : `${before}]}}`;
}

/**
 * Returns a stream whose first piece has been produced. It is not a generator: if the client disconnected
 * before the first read, a generator would never start, and would leave its source open.
 */
export async function begun(content: AsyncIterable<string | Buffer>): Promise<Readable> {
  const pieces = content[Symbol.asyncIterator]();
  const first = await pieces.next();
  let isRead = false;
  const next = async () => {
    if (isRead) return pieces.next();
    isRead = true;
    return first;
  };
  const end = async () => (await pieces.return?.()) ?? { done: true as const, value: undefined };
  return Readable.from(
    { [Symbol.asyncIterator]: () => ({ next, return: end }) },
    { objectMode: false, highWaterMark: STREAM_BUFFER_BYTES },
  );
}

/**
 * Returns a stream as it is sent: compressed if the client asks for it, and read as fast as the client reads.
 * An error in the middle breaks the connection, and is logged.
 */
function encoded(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  readable: Readable,
): Readable {
  readable.once('error', (error: NodeJS.ErrnoException) => {
    // A client that disconnects is not a fault of the service. With a compressor it looks like one.
    if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    service.log.error({ requestId: request.id, err: error }, 'a download broke off');
  });
  reply.header('vary', 'accept-encoding');
  if (!prefersGzip(request.headers['accept-encoding'])) return readable;
  reply.header('content-encoding', 'gzip');
  // An error destroys the compressor before it has written its end, so the client sees that the document is
  // incomplete.
  return pipeline(readable, createGzip({ level: GZIP_LEVEL }), () => {});
}

/**
 * Answers with the refusal that caused an error. A bug is logged and answered with `96`.
 *
 * A client that is still sending its body is answered after it has stopped. If a connection is closed while
 * data arrives, it is reset, and the answer is lost.
 */
export function sendRefusal(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
  { statuses, notFound, fields = [] }: Rendering,
): void {
  const refusal = toRefusal(error, request.raw.errored === null);
  if (!refusal) service.log.error({ requestId: request.id, err: error }, 'a request failed');
  service.readiness.refused(error, { isOfTill: true });
  const { statusCode, message } = outcomeOf(refusal, notFound);
  request.trace.statusCode = statusCode;
  reply.code(httpStatusOf(refusal, statuses)).type(JSON_TYPE);
  // A download that failed before its first bytes were sent is answered uncompressed.
  reply.removeHeader('content-encoding');
  if (refusal) setRefusalHeaders(request, reply, refusal);
  // Only `58` has data: the result of the first update, rendered by the endpoint and serialized by its
  // schema.
  const text =
    refusal?.data === undefined
      ? bodyText(
          statusCode,
          message,
          refusal && (refusal.errors ?? valueErrors(refusal.code, fields, refusal.limit)),
        )
      : reply.serializeInput({ statusCode, message, data: refusal.data }, '200');
  if (request.raw.complete !== false) {
    reply.send(text);
    return;
  }
  drainBody(request.raw, () => {
    if (!request.raw.complete) reply.header('connection', 'close');
    reply.send(text);
  });
}

/** The errors of Fastify itself, by their codes. */
const FRAMEWORK: Readonly<Record<string, () => TransportRefusal>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () => bodyTooLarge(),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new TransportRefusal('98', 415),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: notJson,
  FST_ERR_BAD_URL: () => new TransportRefusal('98', 404),
  FST_ERR_MAX_PARAM_LENGTH: () => new TransportRefusal('98', 404),
};

/**
 * Returns the refusal that caused an error while a request was served, or undefined for a bug.
 * @param isConnected whether the client is still connected: if it is not, the error is no bug
 */
export function toRefusal(error: unknown, isConnected: boolean): Refusal | undefined {
  if (error instanceof Refusal) return error;
  const code = (error as { code?: unknown } | undefined)?.code;
  const known = typeof code === 'string' && Object.hasOwn(FRAMEWORK, code) ? FRAMEWORK[code] : undefined;
  if (known) return known();
  if (!isConnected) return new TransportRefusal('30', 400);
  return isUnavailable(error) ? new Refusal('91') : undefined;
}

function httpStatusOf(refusal: Refusal | undefined, statuses: Dialect['statuses'] | undefined): number {
  if (!refusal) return 500;
  if (refusal instanceof TransportRefusal) return refusal.httpStatus;
  if (refusal.code === '91') return 503;
  return statuses?.[refusal.code] ?? 400;
}

function setRefusalHeaders({ headers }: FastifyRequest, reply: FastifyReply, refusal: Refusal): void {
  // For a request from a page's script, a browser would open its own sign-in dialog.
  if (refusal.code === '01' && headers['sec-fetch-dest'] !== 'empty')
    reply.header('www-authenticate', 'Basic');
  if (refusal instanceof TransportRefusal && refusal.allow) reply.header('allow', refusal.allow);
  const mayRetry = refusal.code === '91' || refusal.code === '97';
  const waitSeconds = refusal.retryAfterSeconds ?? (mayRetry ? RETRY_AFTER_SECONDS : undefined);
  if (waitSeconds !== undefined) reply.header('retry-after', String(Math.max(1, Math.ceil(waitSeconds))));
}

/** The most bytes of an unwanted body that are discarded before its client is answered. */
const DRAIN_MAX_BYTES = 1024 * 1024;
/** A client that has sent nothing for this long is assumed to wait for its answer. */
const DRAIN_IDLE_MS = 200;

/** Discards the rest of a body. Calls back when it ends, is too long or stops arriving. */
function drainBody(request: IncomingMessage, done: () => void): void {
  let leftBytes = DRAIN_MAX_BYTES;
  const timer = setTimeout(finish, DRAIN_IDLE_MS);
  function onData(chunk: Buffer) {
    leftBytes -= chunk.length;
    if (leftBytes < 0) finish();
    else timer.refresh();
  }
  function finish() {
    clearTimeout(timer);
    request.off('data', onData).off('end', finish).off('close', finish);
    done();
  }
  request.on('data', onData).once('end', finish).once('close', finish).resume();
}

/** Renders results of the core as the data of answers that both variants share. */

/** Renders a batch. If it is complete, its vouchers follow page by page. */
export function renderBatch(
  { service }: Context,
  { batch, replayed = false }: { readonly batch: Batch; readonly replayed?: boolean },
): Answer<typeof BatchData> {
  const data = batchData(batch);
  if (batch.status !== 'COMPLETED') return { data, replayed };
  const pages = renderPages(readVouchers(service, batch));
  return { data, replayed, vouchers: { quantity: batch.quantity, pages } };
}

async function* renderPages(
  pages: ReturnType<typeof readVouchers>,
): AsyncGenerator<Static<typeof BatchVoucher>[]> {
  for await (const page of pages) {
    yield page.map(({ serialNumber, code, pin }) => ({ serialNumber: Number(serialNumber), code, pin }));
  }
}

/**
 * Renders a balance.
 * @param voucherCode as the client sent it
 */
export function renderBalance(found: VoucherBalance, voucherCode: string) {
  return {
    serialNumber: Number(found.serialNumber),
    voucherCode,
    balance: toNumber(found.balance),
    usableAmount: toNumber(found.usable),
    transactions: found.transactions.map(({ transactionId, type, amount, timestamp, reference }) => ({
      transactionId,
      transactionType: type,
      amount: toNumber(amount),
      timestamp,
      reference,
    })),
  };
}
