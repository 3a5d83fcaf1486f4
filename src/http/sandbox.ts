import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { PRECEDENCE, REFUSALS, Refusal, type RefusalCode } from '../refusal.ts';
import { policyOf } from './headers.ts';
import { escapeHtml, HTML } from './html.ts';
import type { Serving } from './routes.ts';
import { parseJson } from './wire.ts';

/**
 * Adds to the interface of a sandbox: amounts that cause each refusal, delays and outages, and a page that
 * lists them with the vouchers. It exists only after `scrip serve --sandbox`.
 */

/** A voucher of the sandbox, and the answer to its redemption. */
export type SandboxVoucher = {
  readonly state: string;
  readonly code: string;
  readonly pin: string;
  readonly serialNumber: string;
  readonly redeemAnswers: string;
};

export type SandboxSet = {
  readonly keyId: string;
  readonly secret: string;
  /** The reference of a redemption that was already updated. */
  readonly updatedReference: string;
  readonly vouchers: readonly SandboxVoucher[];
};

export type Sandbox = {
  set(): SandboxSet;
  /** Creates new vouchers in every state. */
  renew(): Promise<void>;
  now(): Date;
  /** Advances the clock by a duration of ISO 8601. The work of the skipped time begins. */
  advance(duration: string): Promise<void>;
};

/** 9999.CC is answered with the code CC. */
const REFUSED_FROM = 999_900;
/** 9998.SS is answered after SS seconds. */
const DELAYED_FROM = 999_800;
/** 9997.NN is an outage. */
const LOST_BEFORE = 999_701;
const LOST_AFTER = 999_702;
const BROKEN = 999_703;
const HUNDRED = 100;
const MS = 1_000;

/** Refusals that follow from the form of a request, not from its content. */
const NOT_BY_AMOUNT: ReadonlySet<RefusalCode> = new Set(['98', '58']);

const OUTAGES = [
  ['9997.01', 'the connection breaks before anything is done'],
  ['9997.02', 'the request is carried out, and the connection breaks before the answer; a copy is answered'],
  ['9997.03', 'internal error (96)'],
] as const;

/** Returns the amount of a request in hundredths, from any of its field names. */
function hundredthsOf(body: unknown): number | undefined {
  const { amount, value } = (body ?? {}) as { amount?: unknown; value?: unknown };
  const given = amount ?? value;
  return typeof given === 'number' ? Math.round(given * HUNDRED) : undefined;
}

/** The connection breaks instead of an answer. */
class ConnectionLost extends Error {}

/** Returns what serves a dialect whose amounts cause refusals, delays and outages. */
export function rehearsed({ dialect, refuse, ...serving }: Serving): Serving {
  const endpoints = dialect.endpoints.map((endpoint) => ({
    ...endpoint,
    run: async (...[context, body, reference]: Parameters<typeof endpoint.run>) => {
      const hundredths = hundredthsOf(body);
      await cause(hundredths);
      const answer = await endpoint.run(context, body, reference);
      if (hundredths === LOST_AFTER && !answer.replayed) throw new ConnectionLost();
      return answer;
    },
  }));
  return {
    ...serving,
    dialect: { ...dialect, endpoints },
    refuse(service, request, reply, error, manner) {
      if (!(error instanceof ConnectionLost)) return refuse(service, request, reply, error, manner);
      reply.hijack();
      request.raw.socket.destroy();
    },
  };
}

/**
 * Causes what an amount stands for before the request is carried out: it waits, or throws.
 * @throws Refusal, ConnectionLost, or Error for an internal error
 */
async function cause(hundredths: number | undefined): Promise<void> {
  if (hundredths === undefined) return;
  if (hundredths === LOST_BEFORE) throw new ConnectionLost();
  if (hundredths === BROKEN) throw new Error('the sandbox was asked for an internal error');
  const rest = hundredths % HUNDRED;
  if (hundredths - rest === DELAYED_FROM) await sleep(rest * MS);
  if (hundredths - rest !== REFUSED_FROM) return;
  const code = String(rest).padStart(2, '0');
  const refusal = refusableCodes().find((each) => each === code);
  if (refusal) throw new Refusal(refusal);
}

const refusableCodes = () => PRECEDENCE.filter((code) => !NOT_BY_AMOUNT.has(code));

/** Serves the page of the sandbox under /sandbox, also as JSON. */
export function serveSandbox(app: FastifyInstance, sandbox: Sandbox): void {
  app.get('/sandbox', (request, reply) => {
    const set = sandbox.set();
    if (!request.headers.accept?.includes('text/html'))
      return { ...set, now: sandbox.now(), amounts: amounts() };
    const permitted = { 'style-src': "'unsafe-inline'", 'form-action': "'self'" };
    reply.header('content-security-policy', policyOf(permitted));
    return reply.type(HTML).send(page(set, sandbox.now()));
  });
  app.post('/sandbox/vouchers', async (_request, reply) => {
    await sandbox.renew();
    return reply.redirect('/sandbox', 303);
  });
  app.post('/sandbox/clock', async (request) => {
    await sandbox.advance(durationOf(parseJson(request.body as Buffer | undefined)));
    return { now: sandbox.now() };
  });
}

const DURATION =
  /^P(?!$)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/;
/** A year, a month, a week, a day, an hour, a minute and a second, in days. */
const DAYS = [365, 30, 7, 1, 1 / 24, 1 / 1_440, 1 / 86_400];
/** Every day that is skipped has to be closed. */
const DAYS_MAX = 366;

/** @throws Refusal if the body is not `{"advance": DURATION}` */
function durationOf(body: unknown): string {
  const { advance } = (body ?? {}) as { advance?: unknown };
  const parts = typeof advance === 'string' ? DURATION.exec(advance)?.slice(1) : undefined;
  const days = parts?.reduce((sum, part, index) => sum + Number(part ?? 0) * (DAYS[index] ?? 0), 0);
  if (days !== undefined && days <= DAYS_MAX) return advance as string;
  const message = 'Must be a duration of ISO 8601 of at most a year, such as PT16M, P2D or P1M';
  throw new Refusal('30', { errors: [{ field: 'advance', rule: 'duration', message }] });
}

function amounts(): { amount: string; effect: string }[] {
  const refusals = refusableCodes().map((code) => ({
    amount: `9999.${code}`,
    effect: `${code} ${REFUSALS[code]}`,
  }));
  return [
    ...refusals,
    { amount: '9998.SS', effect: 'an answer after SS seconds (9998.05: 5 s)' },
    ...OUTAGES.map(([amount, effect]) => ({ amount, effect })),
  ];
}

function page({ keyId, secret, updatedReference, vouchers }: SandboxSet, now: Date): string {
  const row = (cells: readonly string[]) =>
    `<tr>${cells.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`;
  const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
    `<table><thead><tr>${head.map((cell) => `<th>${cell}</th>`).join('')}</tr></thead><tbody>${rows
      .map(row)
      .join('')}</tbody></table>`;
  const found = vouchers.map(({ state, code, pin, serialNumber, redeemAnswers }) => [
    state,
    code,
    pin,
    serialNumber,
    redeemAnswers,
  ]);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Scrip sandbox</title>
<meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #ccc}
td{font-variant-numeric:tabular-nums}code{background:#eee;padding:0 .25rem}
@media (prefers-color-scheme:dark){body{background:#111;color:#eee}code{background:#333}}</style>
<h1>Sandbox</h1>
<p>No money here. Key <code>${escapeHtml(keyId)}</code>, secret <code>${escapeHtml(secret)}</code>.
The <a href="/docs/">documentation</a> of the interface is the same as in production.</p>
<h2>Vouchers</h2>${table(['State', 'Code', 'PIN', 'Serial number', 'A redemption is answered'], found)}
<form method="post" action="/sandbox/vouchers"><p><button>Make new vouchers</button></p></form>
<p>The redemption <code>${escapeHtml(updatedReference)}</code> was updated already:
another update is answered 58.</p>
<h2>Clock</h2>
<p>It is <time>${now.toISOString()}</time> here. To let time pass, post <code>{"advance": "PT16M"}</code> to
<code>/sandbox/clock</code>: locks of PINs end, vouchers expire, days close, and webhooks are tried again.</p>
<h2>Amounts</h2>
<p>These amounts of a generation, activation or redemption bring about what they stand for,
on any voucher.</p>
${table(
  ['Amount', 'Effect'],
  amounts().map(({ amount, effect }) => [amount, effect]),
)}</html>`;
}
