import { createHash } from 'node:crypto';
import helmet from '@fastify/helmet';
import reference from '@scalar/fastify-api-reference';
import type { FastifyInstance } from 'fastify';
import { publicDocuments } from './documents.ts';
import type { Dialect } from './endpoint.ts';

/** The page of the documentation loads nothing from elsewhere and sends nothing elsewhere. */
const POLICY = {
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    // The page's program writes style elements of its own.
    styleSrc: ["'self'", "'unsafe-inline'"],
    imgSrc: ["'self'", 'data:', 'blob:'],
    fontSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'self'"],
    frameAncestors: ["'none'"],
  },
};

/** Serves the documentation: a page under /docs/, the OpenAPI document of each dialect, and what is made of them. */
export function serveDocs(app: FastifyInstance, dialects: readonly Dialect[]): void {
  app.register(async (scope) => {
    await scope.register(helmet, { contentSecurityPolicy: POLICY, strictTransportSecurity: false });
    scope.addHook('onRequest', (request, reply, done) => {
      request.trace.route = '/docs/*';
      reply.header('cache-control', 'no-cache');
      // The page only needs the path of its own address; a Host that is none would break it.
      request.raw.headers.host = 'localhost';
      done();
    });
    scope.addHook('onSend', (_request, reply, payload, done) => {
      const isPage = typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html');
      const policy = String(reply.getHeader('content-security-policy'));
      if (isPage) reply.header('content-security-policy', permitScripts(policy, payload));
      done(null, payload);
    });
    for (const { path, type, text } of publicDocuments()) {
      scope.get(`/docs/${path}`, (_request, reply) => {
        reply.type(type).send(text);
      });
    }
    await scope.register(reference, {
      routePrefix: '/docs',
      configuration: {
        pageTitle: 'Scrip API',
        sources: dialects.map(({ name, title }, index) => ({
          title,
          slug: name,
          // Relative, so that the page also works behind a proxy that serves it below a path of its own.
          url: `${name}/openapi.json`,
          default: index === 0,
        })),
        withDefaultFonts: false,
        telemetry: false,
        proxyUrl: '',
        hideClientButton: true,
        showDeveloperTools: 'never',
        agent: { disabled: true },
        mcp: { disabled: true },
      },
    });
  });
}

/** Permits the scripts that stand in a page, by their digests, and no others. */
function permitScripts(policy: string, page: string): string {
  const scripts = [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)];
  const digests = scripts.map(([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);
  return policy.replace("script-src 'self'", ["script-src 'self'", ...digests].join(' '));
}
