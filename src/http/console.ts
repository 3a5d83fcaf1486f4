import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { kept, type Service } from '../context.ts';
import { readLetterhead } from '../settings/letterhead.ts';
import { serveFolder } from './files.ts';
import { permissionsOf, policyOf } from './headers.ts';
import { escapeHtml, HTML } from './html.ts';
import { PREFIXES } from './operator/desk.ts';
import { TransportRefusal } from './wire.ts';

/** The output of `npm run build -w @scrip/console`, which `npm ci` runs. */
const FOLDER = new URL('../../console/dist/', import.meta.url);

/** The pages. Any address below the prefix is an address within the page. */
const PAGES = [
  { prefix: '/console', file: 'index.html', devices: [] },
  // The till scans cards.
  { prefix: '/portal', file: 'portal.html', devices: ['camera'] },
] as const;

const NONCE = '__NONCE__';
/** Before it, a page names the operator. */
const TITLE = '<title>';
/** How long the name is used before it is read again. */
const NAME_MS = 1_000;

/**
 * Returns a Content-Security-Policy that permits no other origin, neither to load from nor to send to, and
 * only the styles with the nonce of this answer.
 */
function policyFor(nonce: string): string {
  return policyOf({
    'script-src': "'self'",
    'style-src': `'self' 'nonce-${nonce}'`,
    'img-src': "'self' data:",
    'font-src': "'self'",
    'connect-src': "'self'",
    'form-action': "'self'",
  });
}

/**
 * Serves the console under /console/ and the portal under /portal/. If they were not built, both explain how
 * to build them.
 */
export function serveConsole(app: FastifyInstance, service: Service): void {
  app.register(async (scope) => {
    scope.addHook('onRequest', (request, _reply, done) => {
      request.trace.route = '/console/*';
      done();
    });
    const pages = PAGES.map(({ file, ...rest }) => ({ ...rest, html: readPage(file) }));
    if (pages.some(({ html }) => html === undefined)) {
      service.log.warn('the console is not built: run `npm run build -w @scrip/console`, then start again');
    } else {
      await serveFolder(scope, {
        root: new URL('assets/', FOLDER),
        prefix: '/console/assets/',
        isForever: true,
        missing: () => {
          throw new TransportRefusal('98', 404);
        },
      });
    }
    for (const { prefix, html, devices } of pages) {
      scope.get(prefix, (_request, reply) => reply.redirect(`${prefix}/`, 308));
      for (const path of [`${prefix}/`, `${prefix}/*`])
        scope.get(path, async (request, reply) => {
          // Not a page, but an unknown path of the API with the same prefix.
          if (request.url.startsWith(`${PREFIXES.portal}/`)) throw new TransportRefusal('98', 404);
          const named = html && (await nameOperator(html, service));
          return sendPage(reply.header('permissions-policy', permissionsOf(devices)), named);
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

/**
 * The name of the operator in its letterhead, or null. Strangers ask for it, and its connections are those of
 * the tills: however many ask, it is read at most once in a second, and only the first of them wait. While
 * the database is away, the last known name is used.
 */
const operatorName = kept(({ readDb }) => {
  let known: string | null = null;
  let readAt: number | undefined;
  let reading: Promise<void> | undefined;
  const read = async () => {
    ({ sender: known } = await readLetterhead(readDb).catch(() => ({ sender: known })));
    readAt = performance.now();
    reading = undefined;
  };
  return async () => {
    if (readAt === undefined || performance.now() - readAt > NAME_MS) reading ??= read();
    if (readAt === undefined) await reading;
    return known;
  };
});

/** Names the operator in a page, as its letterhead does. */
async function nameOperator(html: string, service: Service): Promise<string> {
  const name = await operatorName(service)();
  if (name === null) return html;
  return html.replace(TITLE, () => `<meta name="application-name" content="${escapeHtml(name)}" />${TITLE}`);
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
    .type(HTML)
    .send(html.replace(NONCE, nonce));
}
