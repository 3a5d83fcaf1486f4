import {
  Scrip,
  ScripError,
  UnknownOutcomeError,
  verifyWebhook,
  WebhookVerificationError,
} from '@scrip/client';

/**
 * The calls of a merchant, with nothing but what every runtime has. The same file runs on each runtime.
 */

/** The error of a call that must fail. */
async function failure(call) {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error('a call that must fail succeeded');
}

const nameOf = (error) => (error instanceof ScripError ? error.code : String(error));

/** Waits for a batch that is produced in the background, downloads it, and stops other downloads early. */
async function large(scrip) {
  const { reference } = await scrip.generate({ productCode: 'DEFAULT', quantity: 2_500, value: 1 });
  const { status } = await scrip.waitForBatch(reference);
  const codes = new Set();
  for await (const { code, pin } of scrip.downloadVouchers(reference)) codes.add(`${code}${pin}`);
  let first = 0;
  for await (const _voucher of scrip.downloadVouchers(reference)) if (++first === 3) break;
  const stopping = new AbortController();
  async function untilAborted() {
    for await (const _voucher of scrip.downloadVouchers(reference, { signal: stopping.signal }))
      stopping.abort();
  }
  return { reference, status, codes: codes.size, first, aborted: nameOf(await failure(untilAborted())) };
}

async function readAll(scrip, reference) {
  for await (const _voucher of scrip.downloadVouchers(reference));
}

/** A till whose connection breaks, hangs or is redirected. */
async function overBadNetwork({ scrip, voucher, reference, settings, connect }) {
  const retried = [];
  const shaky = (path, options = {}) =>
    connect({
      baseUrl: `${settings.faultyUrl}/${path}`,
      attemptTimeoutMs: 3_000,
      retryDelayMs: 1,
      onRetry: ({ error }) => retried.push(error.code),
      ...options,
    });
  const paid = await shaky('answer-lost').redeem({ ...voucher, amount: 10.5, reference: 'paid' });
  const late = await shaky('answer-late').redeem({ ...voucher, amount: 1, reference: 'late' });
  const updated = await shaky('update-lost').updateRedemption({ reference: 'paid', amountUsed: 4 });
  const unknown = await failure(
    shaky('never', { maxAttempts: 1 }).redeem({ ...voucher, amount: 2, reference: 'unknown' }),
  );
  const elsewhere = await failure(
    shaky('redirect').redeem({ ...voucher, amount: 3, reference: 'elsewhere' }),
  );
  const broken = await failure(readAll(shaky('download-cut', { maxAttempts: 1 }), reference));
  const nobody = await failure(shaky('x', { baseUrl: settings.closedUrl, maxAttempts: 1 }).balance(voucher));
  return {
    retried,
    paid: [paid.amount, paid.replayed],
    late: [late.amount, late.replayed],
    updated: [updated.newTransaction.amount, updated.replayed],
    unknown: [unknown instanceof UnknownOutcomeError, unknown.reference, await unknown.lookup()],
    elsewhere: nameOf(elsewhere),
    broken: nameOf(broken),
    nobody: nameOf(nobody),
    balance: (await scrip.balance(voucher)).balance,
  };
}

async function webhooks({ body, headers, secret }) {
  const event = await verifyWebhook(body, headers, secret);
  const fromBytes = await verifyWebhook(new TextEncoder().encode(body), new Headers(headers), [secret]);
  const changed = await failure(verifyWebhook(`${body} `, headers, secret));
  return [
    event.type,
    event.data.balance,
    fromBytes.id === event.id,
    changed instanceof WebhookVerificationError,
  ];
}

/** Every form in which a log could print a value. */
function printed(value, format) {
  return [String(value), JSON.stringify(value), JSON.stringify({ value }), format(value)].join('\n');
}

/**
 * @param settings the address of the service, the API key, and a webhook to verify
 * @param format how the runtime's console shows a value
 * @returns the results, the same on every runtime
 */
export async function use(settings, format) {
  const { baseUrl, keyId, secret } = settings;
  const connect = (options) => new Scrip({ baseUrl, keyId, secret, variant: 'a', ...options });
  const scrip = connect();
  const { vouchers } = await scrip.generate({ productCode: 'DEFAULT', quantity: 2, value: 25 });
  const [{ code, pin }, other] = vouchers;
  const batch = await large(scrip);
  const badNetwork = await overBadNetwork({
    scrip,
    voucher: { code, pin },
    reference: batch.reference,
    settings,
    connect,
  });
  const refused = await failure(scrip.redeem({ code: other.code + other.pin, amount: 25.01 }));
  const inB = connect({ variant: 'b', currency: 'USD' });
  const shown = [scrip, inB, refused, refused.stack].map((value) => printed(value, format)).join('\n');
  return {
    batch: { ...batch, reference: undefined },
    badNetwork,
    refused: [refused.code, refused.statusCode, refused.userMessage('fr'), typeof refused.requestId],
    inexact: nameOf(await failure(scrip.redeem({ code, pin, amount: 0.1 + 0.2 }))),
    inB: [
      (await inB.redeem({ ...other, amount: 25, reference: 'in-b' })).amount,
      nameOf(await failure(inB.transaction('x'))),
    ],
    webhooks: await webhooks(settings.webhook),
    hides: [secret, btoa(`${keyId}:${secret}`), other.code, other.code + other.pin].every(
      (each) => !shown.includes(each),
    ),
  };
}
