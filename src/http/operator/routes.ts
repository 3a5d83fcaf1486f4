import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { recordRefusal } from '../../audit/refusals.ts';
import type { AnyOperation } from '../../operation.ts';
import { type Performed, perform } from '../../operations/perform.ts';
import { PORTAL_OPERATIONS } from '../../operations/portal.ts';
import { OPERATIONS } from '../../operations/table.ts';
import { type Door, doorOf } from '../../people/sessions.ts';
import { actorOf, type Principal } from '../../principal.ts';
import { invalid, Problem } from '../../problem.ts';
import { type File, parametersOf, typeOf } from '../../schema.ts';
import { begun, JSON_TYPE, renameRequest } from '../answer.ts';
import { checkHead, codingOf, parseJson } from '../wire.ts';
import { type Desk, PREFIXES } from './desk.ts';
import { identifyAgain, identifyPrincipal } from './identify.ts';
import type { DescribedApi } from './openapi.ts';
import { sendProblem } from './problems.ts';
import { serveProgress } from './progress.ts';

/** The APIs of both doors, as the documentation describes them. */
export const OPERATOR_APIS: readonly [DescribedApi, DescribedApi] = [
  {
    name: 'operator',
    title: 'Scrip operator API',
    description: 'Every operation of the command line, for the operator. See docs/reference/operator-api.md.',
    operations: OPERATIONS,
  },
  {
    name: 'portal',
    title: 'Scrip portal API',
    description: 'What the people and programs of a merchant do beside the till.',
    operations: PORTAL_OPERATIONS,
  },
];

const KEY_FORM = /^[\x21-\x7e]{1,100}$/;

/** Serves every operation of the tables at its door. */
export function serveOperator(app: FastifyInstance, desk: Desk): void {
  for (const { name: door, operations } of OPERATOR_APIS)
    for (const operation of operations) serveOperation(app, desk, door, operation);
  serveProgress(app, desk);
}

function serveOperation(app: FastifyInstance, desk: Desk, door: Door, operation: AnyOperation): void {
  const { service } = desk;
  const { method, path, bodyMaxBytes } = operation;
  const hasBody = method === 'POST' || method === 'PATCH';
  /** The sender of each request, known after its head was read. */
  const callers = new WeakMap<FastifyRequest, Principal>();
  app.route({
    method,
    url: PREFIXES[door] + path,
    ...(bodyMaxBytes !== undefined && { bodyLimit: bodyMaxBytes }),
    // Before the body is read, in case the client may not send one.
    async onRequest(request, reply) {
      const refusal = hasBody && checkHead(request.headers, ['application/json'], bodyMaxBytes);
      if (refusal) throw refusal;
      const principal = await identifyPrincipal(desk, request, reply, door);
      if (doorOf(principal.merchantId) !== door) throw new Problem('forbidden');
      callers.set(request, principal);
    },
    async handler(request, reply) {
      const principal = hasBody
        ? await identifyAgain(desk, request, door)
        : (callers.get(request) as Principal);
      const input = inputOf(operation, request, hasBody);
      const idempotencyKey = keyOf(request, operation);
      const performed = await perform(operation, { service, principal, input, idempotencyKey });
      const booked = bookedBy(operation, performed.output);
      if (booked !== undefined) renameRequest(request, reply, booked);
      return send(request, reply, operation, performed);
    },
    errorHandler(error, request, reply) {
      const principal = callers.get(request);
      if (principal && error instanceof Problem && error.code === 'forbidden')
        recordRefusal(service, {
          action: 'operation.refused',
          subject: `operation ${operation.name}`,
          actor: actorOf(principal, null),
          address: principal.origin,
          requestId: request.id,
          by: null,
        });
      sendProblem(service, request, reply, error);
    },
  });
}

/** Returns the id of a transaction that was booked without an entry in the audit: by a till. */
function bookedBy({ audit, effect }: AnyOperation, output: unknown): string | undefined {
  if (audit !== null || effect === 'read') return undefined;
  const { transaction, replayed } = output as {
    readonly transaction?: { readonly transactionId: string };
    readonly replayed?: boolean;
  };
  return replayed ? undefined : transaction?.transactionId;
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { status = 200, files, effect }: AnyOperation,
  { output, replayed, proposed, alone }: Performed,
): Promise<FastifyReply> {
  if (files && !proposed) return sendFile(reply, output as File);
  if (replayed || (output as { readonly replayed?: unknown } | null)?.replayed === true)
    reply.header('idempotent-replayed', 'true');
  reply.code(proposed ? 202 : status).type(JSON_TYPE);
  const text = JSON.stringify(alone ? { ...(output as object), ...ALONE } : output);
  if (effect !== 'read') return reply.send(text);
  reply.header('vary', 'accept-encoding');
  const coding = codingOf(request.headers['accept-encoding'], CODINGS);
  if (text.length < PACKED_MIN || !coding) return reply.send(text);
  return reply.header('content-encoding', coding).send(await PACK[coding](text));
}

/**
 * Lists and reports are compressed, on another thread than that of the tills. Shorter texts fit into one
 * packet. Answers of changes are not compressed, since the length of a compressed text hints at the secrets
 * in it.
 */
const PACK = {
  // As quick as gzip at this quality, and a tenth shorter.
  br: (text: string) => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: promisify(gzip),
};
const CODINGS = ['br', 'gzip'] as const;
const PACKED_MIN = 1_000;

/** What an answer adds if one person performed what two people have to agree on. */
const ALONE = { approval: { alone: true } };

/**
 * Answers with a file. Its first piece is produced first, so that an error until then is a problem document.
 */
async function sendFile(reply: FastifyReply, { name, mediaType, content }: File): Promise<FastifyReply> {
  const body = typeof content === 'string' || Buffer.isBuffer(content) ? content : await begun(content);
  return reply.type(mediaType).header('content-disposition', `attachment; filename="${name}"`).send(body);
}

/** Returns the input of an operation: the parameters of the path, and the fields of the body or the query. */
function inputOf(operation: AnyOperation, request: FastifyRequest, hasBody: boolean): unknown {
  const parameters = request.params as Record<string, string>;
  const given = hasBody
    ? bodyOf(request)
    : queryOf(operation, request.query as Record<string, string | string[]>);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given;
  const twice = parametersOf(operation.path).find((name) => Object.hasOwn(given, name));
  if (twice) throw invalid(twice, 'unknown-field', 'is in the path already: leave it out here');
  return { ...given, ...parameters };
}

/** An action without fields needs no body. */
function bodyOf({ body }: FastifyRequest): unknown {
  const bytes = body as Buffer | undefined;
  return bytes === undefined || bytes.length === 0 ? {} : parseJson(bytes);
}

/**
 * Returns the fields of a query, with the types of the schema. Values that do not fit remain text, which the
 * schema refuses.
 */
function queryOf({ input }: AnyOperation, query: Record<string, string | string[]>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const type = typeOf(input, name);
      if (type === 'array') return [name, [value].flat()];
      if (Array.isArray(value)) throw invalid(name, 'unique', 'is given twice in the query');
      if ((type === 'integer' || type === 'number') && /^-?\d{1,15}(\.\d{1,6})?$/.test(value))
        return [name, Number(value)];
      if (type === 'boolean' && (value === 'true' || value === 'false')) return [name, value === 'true'];
      return [name, value];
    }),
  );
}

/** Returns the Idempotency-Key. @throws Problem for a malformed key; reads take none */
function keyOf({ headers }: FastifyRequest, { effect }: AnyOperation): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined || effect === 'read') return undefined;
  if (typeof key !== 'string' || !KEY_FORM.test(key))
    throw invalid('Idempotency-Key', 'pattern', 'must have 1 to 100 printable characters without spaces');
  return key;
}
