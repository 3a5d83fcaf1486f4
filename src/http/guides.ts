import { existsSync } from 'node:fs';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { serveFolder } from './files.ts';
import { policyOf } from './headers.ts';

/** The output of `npm run docs:build`, which `npm ci` runs. */
const FOLDER = new URL('../../docs/site/dist/', import.meta.url);
const PREFIX = '/docs/guides';

export const NOT_BUILT = 'The documentation is not built: npm run docs:build\n';

/** The pages load nothing from other origins, and contain no inline scripts. */
const POLICY = policyOf({
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
});

/** Serves the guides (the documentation site) under /docs/guides/. */
export function serveGuides(app: FastifyInstance): void {
  const say = (reply: FastifyReply, status: number, text: string) =>
    reply.code(status).type('text/plain; charset=utf-8').send(text);
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, done) => {
      reply.header('content-security-policy', POLICY);
      request.trace.route = `${PREFIX}/*`;
      done();
    });
    if (!existsSync(FOLDER)) {
      scope.get(`${PREFIX}/*`, (_request, reply) => say(reply, 503, NOT_BUILT));
      return;
    }
    scope.get(PREFIX, (_request, reply) => reply.redirect(`${PREFIX}/`, 308));
    await serveFolder(scope, {
      root: FOLDER,
      prefix: `${PREFIX}/`,
      cacheControl: 'no-cache',
      missing: (reply) => say(reply, 404, `No such page: see ${PREFIX}/\n`),
    });
  });
}
