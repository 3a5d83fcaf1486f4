/**
 * The yardstick of everything that is not the database: bare Fastify, as in its own benchmarks. At
 * `/bytes/N` it sends N bytes that it has in memory, in pieces of the size of a download's.
 */
import { Readable } from 'node:stream';
import Fastify from 'fastify';

const PIECE = Buffer.alloc(16 * 1024, '{"hello":"world"}');

function* piecesOf(count: number): Generator<Buffer> {
  for (let left = count; left > 0; left -= PIECE.length) yield PIECE.subarray(0, left);
}

const app = Fastify();
app.get(
  '/',
  { schema: { response: { 200: { type: 'object', properties: { hello: { type: 'string' } } } } } },
  () => ({
    hello: 'world',
  }),
);
app.get<{ Params: { count: string } }>('/bytes/:count', (request, reply) =>
  reply
    .type('application/json')
    .send(Readable.from(piecesOf(Number(request.params.count)), { objectMode: false })),
);
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
