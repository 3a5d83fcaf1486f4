import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import type { Dialect } from './endpoint.ts';
import { serveFolder } from './files.ts';
import { policyOf } from './headers.ts';
import { type DescribedApi, describeApi } from './operator/openapi.ts';
import { prefersGzip } from './wire.ts';

/** The output of `npm run docs:build`, which `npm ci` runs. */
const GUIDES = new URL('../../docs/site/dist/', import.meta.url);
const GUIDES_PREFIX = '/docs/guides';

const NOT_BUILT = 'The documentation is not built: npm run docs:build\n';

/** The pages load nothing from other origins, and contain no inline scripts. */
const GUIDES_POLICY = policyOf({
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
});

/** The page of the documentation loads nothing from other origins and sends nothing to them. */
const POLICY = policyOf({
  'script-src': "'self'",
  // The page's program adds style elements.
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data: blob:",
  'font-src': "'self' data:",
  'connect-src': "'self'",
  'form-action': "'self'",
});

/** Files that are served unchanged: those that `npm run docs:build` makes, and pages of the reference. */
const BUILT = new URL('../../docs/site/dist/api/', import.meta.url);
const REFERENCE = new URL('../../docs/reference/', import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  json: 'application/json; charset=utf-8',
  // Browsers show plain text, and download Markdown.
  md: 'text/plain; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
};
const FILES = ['postman.json', 'llms.txt'];
const PAGES = ['interface.md', 'status-codes.md'];

/** Browsers request it unasked. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect x="1" y="4" width="14" height="8" ' +
  'rx="1"/></svg>';

/**
 * Serves the documentation: the guides, a page under /docs/, the OpenAPI document of each dialect and each
 * table of operations, and the files of the reference.
 */
export function serveDocs(
  app: FastifyInstance,
  dialects: readonly Dialect[],
  apis: readonly DescribedApi[],
): void {
  serveGuides(app);
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, done) => {
      request.trace.route = '/docs/*';
      reply.header('cache-control', 'no-cache');
      reply.header('content-security-policy', POLICY);
      done();
    });
    scope.addHook('onSend', (_request, reply, payload, done) => {
      const isPage =
        typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html');
      const policy = String(reply.getHeader('content-security-policy'));
      if (isPage) reply.header('content-security-policy', permitScripts(policy, payload));
      done(null, payload);
    });
    const built = [...dialects.map(({ name }) => `${name}/openapi.json`), ...FILES];
    for (const [folder, files] of [
      [BUILT, built],
      [REFERENCE, PAGES],
    ] as const) {
      for (const file of files) {
        const text = await readFile(new URL(file, folder), 'utf8').catch(() => undefined);
        const type = TYPES[file.slice(file.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
        if (text !== undefined) serveText(scope, `/docs/${file}`, type, () => text);
        else
          scope.get(`/docs/${file}`, (_request, reply) =>
            reply.code(503).type('text/plain; charset=utf-8').send(NOT_BUILT),
          );
      }
    }
    for (const api of apis)
      serveText(scope, `/docs/${api.name}/openapi.json`, TYPES['json'] as string, () =>
        JSON.stringify(describeApi(api)),
      );
    scope.get('/favicon.ico', (_request, reply) => reply.type('image/svg+xml').send(ICON));
    let reference: Promise<FastifyInstance> | undefined;
    for (const path of ['/docs', '/docs/', '/docs/js/scalar.js'])
      scope.get(path, async (_request, reply) => {
        reference ??= openReference([...dialects, ...apis]);
        const { statusCode, headers, payload } = await (await reference).inject(path);
        const { location, 'content-type': type } = headers;
        if (location !== undefined) reply.header('location', location);
        if (type !== undefined) reply.type(type);
        return reply.code(statusCode).send(payload);
      });
  });
}

/** Serves a constant text, made on the first request. */
function serveText(scope: FastifyInstance, path: string, type: string, make: () => string): void {
  let text: string | undefined;
  let packed: Buffer | undefined;
  let tag: string | undefined;
  scope.get(path, (request, reply) => {
    text ??= make();
    // Weak, since the compressed text has it too.
    tag ??= `W/"${createHash('sha256').update(text).digest('base64url')}"`;
    reply.type(type).header('vary', 'accept-encoding').header('etag', tag);
    if (request.headers['if-none-match'] === tag) return reply.code(304).send();
    if (!prefersGzip(request.headers['accept-encoding'])) return reply.send(text);
    packed ??= gzipSync(text);
    return reply.header('content-encoding', 'gzip').send(packed);
  });
}

/**
 * Builds the page for trying out the API, as a server that does not listen. It is built on the first request:
 * its program has four megabytes, and would slow down every start.
 */
async function openReference(documents: readonly Documented[]): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference');
  const app = fastify();
  await app.register(reference, { routePrefix: '/docs', configuration: configurationFor(documents) });
  return app;
}

type Documented = { readonly name: string; readonly title: string };

function configurationFor(documents: readonly Documented[]) {
  return {
    pageTitle: 'Scrip API',
    sources: documents.map(({ name, title }, index) => ({
      title,
      slug: name,
      // Relative, so that the page also works behind a proxy that adds a path prefix.
      url: `${name}/openapi.json`,
      default: index === 0,
    })),
    withDefaultFonts: false,
    telemetry: false,
    proxyUrl: '',
    hideClientButton: true,
    showDeveloperTools: 'never' as const,
    agent: { disabled: true },
    mcp: { disabled: true },
  };
}

/** Permits the scripts of a page by their digests, and no others. */
function permitScripts(policy: string, page: string): string {
  const scripts = [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)];
  const digests = scripts.map(
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );
  return policy.replace("script-src 'self'", ["script-src 'self'", ...digests].join(' '));
}

/** Serves the guides (the documentation site) under /docs/guides/. */
function serveGuides(app: FastifyInstance): void {
  const say = (reply: FastifyReply, status: number, text: string) =>
    reply.code(status).type('text/plain; charset=utf-8').send(text);
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, reply, done) => {
      reply.header('content-security-policy', GUIDES_POLICY);
      request.trace.route = `${GUIDES_PREFIX}/*`;
      done();
    });
    if (!existsSync(GUIDES)) {
      scope.get(`${GUIDES_PREFIX}/*`, (_request, reply) => say(reply, 503, NOT_BUILT));
      return;
    }
    scope.get(GUIDES_PREFIX, (_request, reply) => reply.redirect(`${GUIDES_PREFIX}/`, 308));
    await serveFolder(scope, {
      root: GUIDES,
      prefix: `${GUIDES_PREFIX}/`,
      missing: (reply) => say(reply, 404, `No such page: see ${GUIDES_PREFIX}/\n`),
    });
  });
}
