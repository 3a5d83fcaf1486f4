import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import helmet from '@fastify/helmet';
import files from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Service } from '../context.ts';
import { sendRefusal } from './answer.ts';
import { PORTAL_PREFIX } from './operator/routes.ts';
import { TransportRefusal } from './wire.ts';

/** What `npm run build -w @scrip/console` makes, which `npm ci` runs. */
const FOLDER = new URL('../../console/dist/', import.meta.url);

/** The pages: an address below the prefix is an address within the page. */
const PAGES = [
  { prefix: '/console', file: 'index.html' },
  { prefix: '/portal', file: 'portal.html' },
] as const;

const NONCE = '__NONCE__';

/**
 * Nothing is loaded from elsewhere, nothing is sent elsewhere, and only styles with the nonce of this
 * answer are added.
 */
function policyFor(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * Serves the console under /console/ and the portal under /portal/. Without a build, both say how to make
 * one.
 */
export function serveConsole(app: FastifyInstance, service: Service): void {
  app.register(async (scope) => {
    await scope.register(helmet, {
      contentSecurityPolicy: false,
      strictTransportSecurity: false,
      referrerPolicy: { policy: 'no-referrer' },
    });
    scope.addHook('onRequest', (request, _reply, done) => {
      request.trace.route = '/console/*';
      done();
    });
    const pages = PAGES.map(({ prefix, file }) => ({ prefix, html: readPage(file) }));
    if (pages.some(({ html }) => html === undefined)) {
      service.log.warn('the console is not built: run `npm run build -w @scrip/console`, then start again');
    } else {
      await scope.register(
        async (assets) => {
          assets.setNotFoundHandler((request, reply) =>
            sendRefusal(service, request, reply, new TransportRefusal('98', 404), {}),
          );
          await assets.register(files, {
            root: new URL('assets/', FOLDER).pathname,
            preCompressed: true,
            index: false,
            cacheControl: false,
            // Their names hold a digest of what they contain.
            setHeaders: (reply) => reply.header('cache-control', 'public, max-age=31536000, immutable'),
          });
        },
        { prefix: '/console/assets' },
      );
    }
    for (const { prefix, html } of pages) {
      scope.get(prefix, (_request, reply) => reply.redirect(`${prefix}/`, 308));
      for (const path of [`${prefix}/`, `${prefix}/*`])
        scope.get(path, (request, reply) => {
          // No page: an unknown path of the API below the same prefix.
          if (request.url.startsWith(`${PORTAL_PREFIX}/`)) throw new TransportRefusal('98', 404);
          return sendPage(reply, html);
        });
    }
  });
}

function readPage(file: string): string | undefined {
  try {
    return readFileSync(new URL(file, FOLDER), 'utf8');
  } catch {
    return undefined;
  }
}

function sendPage(reply: FastifyReply, html: string | undefined): FastifyReply {
  if (html === undefined)
    return reply
      .code(503)
      .type('text/plain; charset=utf-8')
      .send('The console is not built: npm run build -w @scrip/console\n');
  const nonce = randomBytes(16).toString('base64');
  return reply
    .header('content-security-policy', policyFor(nonce))
    .header('cache-control', 'no-store')
    .type('text/html; charset=utf-8')
    .send(html.replace(NONCE, nonce));
}
