/** The yardstick of everything that is not the database: Fastify with nothing to do, as its own benchmarks have it. */
import Fastify from 'fastify';

const app = Fastify();
app.get('/', { schema: { response: { 200: { type: 'object', properties: { hello: { type: 'string' } } } } } }, () => ({
  hello: 'world',
}));
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`);
