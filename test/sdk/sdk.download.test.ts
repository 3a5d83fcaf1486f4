import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { BatchParser } from '../../sdk/src/batch-parser.ts';
import { Scrip, type Voucher, type WaitProgress } from '../../sdk/src/index.ts';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { findBatch } from '../../src/batches/export.ts';
import { asOperator, produceAll } from '../support/harness.ts';
import { failure } from '../support/sdk.server.ts';
import { standIn } from '../support/stand-in.ts';
import { Till } from '../support/till.ts';

/** The client waits for large batches, and reads downloads as a stream. */

const LARGE = 1_500;

async function open(t: TestContext) {
  const till = await Till.open(t);
  const { keyId, secret, authorization } = till.merchant;
  const { service, baseUrl } = till.testService;
  const scrip = new Scrip({ baseUrl, keyId, secret, variant: 'b' });
  /** Produces a batch, as a worker does in the background. */
  async function produce(reference: string): Promise<void> {
    const { context } = await authenticate(service, authorization);
    for (;;) {
      const batch = await findBatch(context, reference);
      if (batch.status !== 'PROCESSING') return;
      await produceAll(service, batch.id);
    }
  }
  return { till, scrip, produce };
}

/** A server that answers every request with the same pieces; `cut` breaks the connection after them. */
async function answering(t: TestContext, pieces: readonly string[], cut: boolean) {
  const { url: baseUrl } = await standIn(t, async (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    for (const piece of pieces) {
      response.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (cut) response.destroy();
    else response.end();
  });
  return new Scrip({ baseUrl, keyId: 'k', secret: 's', variant: 'b', maxAttempts: 2, retryDelayMs: 1 });
}

describe('a large batch', () => {
  it('is waited for, then read as a stream of exactly its vouchers', async (t) => {
    const { scrip, produce } = await open(t);
    const { reference, status } = await scrip.generate({ quantity: LARGE, value: 1, reference: 'large/1 é' });
    assert.equal(status, 'PROCESSING');
    const reports: WaitProgress[] = [];
    const waiting = scrip.waitForBatch(reference, { onProgress: (progress) => reports.push(progress) });
    await produce(reference);
    const { vouchers, ...head } = await scrip.download(reference);
    assert.equal(vouchers?.length, LARGE);
    assert.deepEqual(await waiting, head);
    for (const { batch, looks } of reports) assert.deepEqual([batch.status, looks > 0], ['PROCESSING', true]);

    const numbers = new Set<number>();
    for await (const { serialNumber, code, pin } of scrip.downloadVouchers(reference)) {
      assert.match(`${code} ${pin}`, /^\d{12} \d{4}$/);
      numbers.add(serialNumber);
    }
    assert.equal(numbers.size, LARGE);

    // A reader that stops early closes the connection.
    for await (const voucher of scrip.downloadVouchers(reference)) if (voucher) break;
  });

  it('is no longer read once its reader aborts', async (t) => {
    const { scrip, produce } = await open(t);
    const { reference } = await scrip.generate({ quantity: LARGE, value: 1 });
    await produce(reference);
    const abort = new AbortController();
    const rest = scrip.downloadVouchers(reference, { signal: abort.signal });
    await rest.next();
    abort.abort();
    const read = async () => {
      for await (const voucher of rest) assert.ok(voucher);
    };
    assert.equal((await failure(read())).code, 'aborted');
  });

  it('that is canceled, unknown or late has an error of its own', async (t) => {
    const { till, scrip } = await open(t);
    const { reference, transactionId } = await scrip.generate({ quantity: 11, value: 1 });
    const late = await failure(scrip.waitForBatch(reference, { deadlineMs: 1 }));
    assert.deepEqual([late.code, late.isRetryable, late.reference], ['timedOut', true, reference]);
    const abort = new AbortController();
    const waiting = scrip.waitForBatch(reference, { signal: abort.signal, onProgress: () => abort.abort() });
    assert.equal((await failure(waiting)).code, 'aborted');

    await cancelBatch(asOperator(till.testService.service), transactionId);
    for (const call of [scrip.waitForBatch(reference), scrip.downloadVouchers(reference).next()].map(
      (each: Promise<unknown>) => failure(each),
    )) {
      const canceled = await call;
      assert.deepEqual([canceled.code, canceled.isRetryable], ['batchCanceled', false]);
    }
    const calls = [scrip.waitForBatch('x'), scrip.downloadVouchers('x').next(), scrip.download('x')];
    for (const call of calls.map((each: Promise<unknown>) => failure(each))) {
      const unknown = await call;
      assert.deepEqual([unknown.code, unknown.statusCode, unknown.isRetryable], ['notFound', '60', false]);
    }
  });
});

const HEAD =
  '{"statusCode":"00","message":"Success","data":{"reference":"x","transactionId":"t","status":"COMPLETED",';
const REST = '"expiryDate":"2030-01-01T00:00:00.000Z","value":25,"vouchers":[';
const voucher = (serialNumber: number) => JSON.stringify({ serialNumber, code: '482913057641', pin: '0731' });

describe('a download', () => {
  it('that breaks off anywhere is an error, and never a shorter list', async (t) => {
    const whole = `${HEAD}${REST}${voucher(1)},${voucher(2)}]}}`;
    const cuts = [10, HEAD.length, whole.length - 80, whole.length - 3, whole.length - 2, whole.length - 1];
    for (const at of cuts) {
      for (const cut of [true, false]) {
        const scrip = await answering(t, [whole.slice(0, at)], cut);
        const seen: Voucher[] = [];
        const read = async () => {
          for await (const each of scrip.downloadVouchers('x')) seen.push(each);
        };
        const broken = await failure(read());
        assert.deepEqual([broken.code, broken.isRetryable], ['networkFailure', true], `at ${at}`);
        assert.equal((await failure(scrip.download('x'))).code, 'networkFailure');
        if (at < HEAD.length) assert.equal((await failure(scrip.waitForBatch('x'))).code, 'networkFailure');
      }
    }
    const scrip = await answering(t, [whole], false);
    assert.equal((await scrip.download('x')).vouchers?.length, 2);
  });

  it('with anything but vouchers in the list is an error', async (t) => {
    for (const items of [
      '{}',
      '1',
      `${voucher(1)},{"serialNumber":"x"}`,
      'nonsense',
      `${voucher(1)} ${voucher(2)}`,
    ]) {
      const scrip = await answering(t, [`${HEAD}${REST}${items}]}}`], false);
      assert.equal((await failure(scrip.download('x'))).code, 'invalidResponse', items);
    }
    const without = await answering(t, [`${HEAD}"expiryDate":"","value":null}}`], false);
    assert.equal((await failure(without.download('x'))).code, 'invalidResponse');
    assert.equal((await failure(without.downloadVouchers('x').next())).code, 'invalidResponse');
  });

  it('may have the fields of the batch after its vouchers', async (t) => {
    const data = `"reference":"x","transactionId":"t","status":"COMPLETED","expiryDate":"","value":null`;
    const text = `{"data":{"vouchers":[${voucher(1)}],${data}},"statusCode":"00","message":""}`;
    const scrip = await answering(t, [text], false);
    assert.equal((await scrip.waitForBatch('x')).status, 'COMPLETED');
    assert.deepEqual((await scrip.download('x')).vouchers, [JSON.parse(voucher(1))]);
  });
});

/** The result of the parser for a text in pieces: that of JSON.parse, or 'refused'. */
function parseInPieces(pieces: readonly string[]): unknown {
  try {
    const parser = new BatchParser();
    const vouchers = pieces.flatMap((piece) => parser.push(piece));
    const whole = parser.finish() as { data: { vouchers: unknown[] } };
    if (parser.hasVouchers) whole.data.vouchers.push(...vouchers);
    return whole;
  } catch (error) {
    assert.ok(error instanceof Error && error.name === 'Malformed', String(error));
    return 'refused';
  }
}

function parseAtOnce(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return 'refused';
  }
}

function split(text: string, borders: readonly number[]): string[] {
  const at = [0, ...borders.map((border) => border % (text.length + 1)).sort((a, b) => a - b), text.length];
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

const names = fc.constantFrom('data', 'vouchers', 'status', 'd"ata', 'a\\', '', 'ü');
const values = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.dictionary(
    names,
    fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.dictionary(names, fc.jsonValue({ maxDepth: 1 }))),
  ),
);
const vouchers = fc.oneof(
  fc.array(fc.record({ serialNumber: fc.nat(), code: fc.string(), pin: fc.string() }), { maxLength: 4 }),
  fc.array(values, { maxLength: 4 }),
  values,
);
const answers = fc
  .record({
    before: values,
    status: values,
    vouchers,
    after: values,
    data: fc.oneof(values, fc.constant(undefined)),
  })
  .map(({ before, status, vouchers, after, data }) => ({
    before,
    data: data === undefined ? { status, vouchers, after } : data,
    after,
  }));
const texts = fc.tuple(fc.oneof(answers, answers, values), fc.constantFrom(undefined, 1, '\t', '\r\n ')).map(
  // JSON.stringify takes ten characters of blanks at most, of any kind.
  ([value, blanks]) => JSON.stringify(value, undefined, blanks),
);
const borders = fc.array(fc.nat(), { maxLength: 12 });

describe('the parser of downloads', () => {
  it('reads what JSON.parse reads, in any pieces', () => {
    fc.assert(
      fc.property(texts, borders, (text, at) => {
        assert.deepEqual(parseInPieces(split(text, at)), JSON.parse(text));
      }),
      { numRuns: 1000 },
    );
  });

  it('refuses what JSON.parse refuses: cut short, or with a character changed', () => {
    const changes = fc.constantFrom(...'{}[]",:\\ 0-1e.tn\u0001x'.split(''), '');
    fc.assert(
      fc.property(texts, fc.nat(), changes, fc.boolean(), borders, (text, where, change, cut, at) => {
        const position = where % text.length;
        const broken = cut
          ? text.slice(0, position)
          : text.slice(0, position) + change + text.slice(position + 1);
        const read = parseInPieces(split(broken, at));
        // The parser refuses a second list of vouchers. JSON.parse takes the later one.
        if (read === 'refused' && broken.split('"vouchers"').length > 2) return;
        assert.deepEqual(read, parseAtOnce(broken));
      }),
      { numRuns: 2000 },
    );
  });

  it('keeps one voucher in memory, whatever the size of the batch', () => {
    const parser = new BatchParser();
    parser.push(HEAD + REST);
    const piece = `${Array.from({ length: 500 }, (_, at) => voucher(at + 1)).join(',')},`;
    let count = 0;
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const grown = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = grown();
    for (let pieces = 0; pieces < 400; pieces++) count += parser.push(piece).length;
    count += parser.push(`${voucher(1)}]}}`).length;
    parser.finish();
    assert.equal(count, 200_001);
    assert.ok(grown() - before < 20 * 1024 * 1024);
  });

  it('refuses an endless voucher or frame', () => {
    const endless = ['"', 'x'.repeat(70_000)].join('');
    assert.equal(parseInPieces([HEAD, REST, endless]), 'refused');
    assert.equal(
      parseInPieces(['{"a":"', ...Array.from({ length: 20 }, () => 'x'.repeat(70_000))]),
      'refused',
    );
  });
});
