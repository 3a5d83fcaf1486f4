import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readVouchersOf } from '../../src/batches/export.ts';
import { createService } from '../../src/context.ts';
import { buildServer } from '../../src/http/server.ts';
import { startTracing } from '../../src/monitor/tracing.ts';
import { startDelivery } from '../../src/webhooks/deliver.ts';
import { createSender } from '../../src/webhooks/send.ts';
import { DIALECTS } from '../support/dialects.ts';
import { standIn } from '../support/stand-in.ts';
import { Hooked } from '../support/webhooks.ts';

type Attribute = { key: string; value: { stringValue?: string; intValue?: number } };
type Sent = {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  attributes: Attribute[];
  links?: { traceId: string; spanId: string }[];
  status: { code: number };
};

/** A collector that receives spans by OTLP over HTTP, as JSON. */
async function collect(t: TestContext) {
  const spans: Sent[] = [];
  const texts: string[] = [];
  let status = 200;
  const { url } = await standIn(t, async (request, response) => {
    const text = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString();
    if (status === 200) {
      texts.push(text);
      const { resourceSpans } = JSON.parse(text);
      for (const { scopeSpans } of resourceSpans) for (const each of scopeSpans) spans.push(...each.spans);
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = url;
  const refuse = (code: number) => {
    status = code;
  };
  return { spans, texts, refuse };
}

const attribute = ({ attributes }: Sent, key: string) => {
  const value = attributes.find((each) => each.key === key)?.value;
  return value?.stringValue ?? value?.intValue;
};

test('a redemption is traced from the request to the statement and to its webhook', async (t) => {
  const { spans, texts } = await collect(t);
  const hooked = await Hooked.open(t);
  await hooked.stop();
  const { testService } = hooked.till;
  const tracing = startTracing('0.0.0', testService.service.log);
  const service = createService({ ...testService.service, tracing });
  const { receiver } = await hooked.add(t, ['voucher.redeemed']);
  const voucher = await hooked.till.voucher();
  const app = buildServer(service, { trustedProxies: ['127.0.0.1/32'] });
  t.after(() => app.close());
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const redeem = async (reference: string, headers: Record<string, string>) => {
    const { method, path, body } = (DIALECTS[0] ?? assert.fail()).redeem(voucher, 1, reference);
    const authorization = hooked.till.merchant.authorization;
    const response = await fetch(baseUrl + path, {
      method,
      headers: { authorization, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return ((await response.json()) as { data: { transactionId: string } }).data.transactionId;
  };
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const id = await redeem('by-a-client', { traceparent });
  const second = await redeem('by-a-proxy', { traceparent, 'x-forwarded-for': '192.0.2.1' });

  const sender = createSender({ allowPrivate: true, clock: service.clock });
  const delivery = startDelivery(service, sender, readVouchersOf);
  while (receiver.received.length < 2) await sleep(20);
  await delivery.stop();
  await tracing.stop();

  const [call, proxied] = [id, second].map((each) =>
    spans.find((span) => attribute(span, 'scrip.transaction') === each),
  );
  assert.ok(call && proxied);
  assert.equal(call.name, 'POST /merchant-client/v2/redeem');
  assert.equal(attribute(call, 'scrip.operation'), 'redeemVoucher');
  assert.equal(attribute(call, 'scrip.status'), '00');
  // The trace of a client is linked. Only that of a trusted proxy is continued.
  assert.notEqual(call.traceId, 'a'.repeat(32));
  assert.ok(call.links?.some(({ traceId }) => traceId === 'a'.repeat(32)));
  assert.deepEqual([proxied.traceId, proxied.parentSpanId], ['a'.repeat(32), 'b'.repeat(16)]);

  const within = spans.filter(({ parentSpanId }) => parentSpanId === call.spanId);
  assert.deepEqual(within.map(({ name }) => name).sort(), ['batcher', 'statement']);
  for (const each of within) assert.equal(attribute(each, 'scrip.rows'), 1);

  const webhook = spans.find((span) => span.name === 'webhook' && span.traceId === id.replaceAll('-', ''));
  assert.ok(webhook);
  assert.ok(
    call.links?.some(({ traceId, spanId }) => traceId === webhook.traceId && spanId === webhook.spanId),
  );
  assert.equal(attribute(webhook, 'http.response.status_code'), 200);

  // No span contains a code, a PIN, a reference or the URL of an endpoint.
  for (const secret of [voucher.code, voucher.pin.padStart(5, '"'), 'by-a-client', receiver.url])
    for (const text of texts) assert.ok(!text.includes(secret), secret);
});

test('a collector that refuses spans is logged once', async (t) => {
  const { refuse } = await collect(t);
  refuse(400);
  const warnings: string[] = [];
  const log = { warn: (_fields: object, text: string) => warnings.push(text), info: () => {} };
  const tracing = startTracing('0.0.0', log as never);
  const incoming = { method: 'GET', route: '/', operation: 'o', variant: 'a', traceparent: undefined };
  const trace = tracing.request({ ...incoming, isTrusted: false });
  assert.equal(
    trace.run(() => tracing.current()?.isRecording()),
    true,
  );
  trace.end({ httpStatus: 200, statusCode: '00', merchantId: 1, transactionId: undefined });
  await tracing.stop();
  assert.deepEqual(warnings, ['traces cannot be exported']);
});
