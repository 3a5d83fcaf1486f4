import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { accessLog, createLogger, readableLines, warningsOf } from '../../src/log.ts';

const TIME = /^\d\d:\d\d:\d\d\.\d\d\d /;

/** The log as it is shown in a terminal, without colors and times. */
function shown(write: (log: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  const log = createLogger('debug', { write: (text) => void lines.push(text) });
  write(log);
  return stripVTControlCharacters(readableLines(lines.join('')))
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(TIME, ''));
}

test('a line of the log shows its time, level, message and details', () => {
  assert.deepEqual(
    shown((log) => {
      log.info({ host: '127.0.0.1', port: 8080, work: true }, 'serving');
      log.warn({ file: '/data/the keys' }, 'the key file can be read by other accounts: chmod 600');
    }),
    [
      'INFO  serving host=127.0.0.1 port=8080 work=true',
      'WARN  the key file can be read by other accounts: chmod 600 file="/data/the keys"',
    ],
  );
});

test('a loop logs the same fault once a minute, with the number of times', () => {
  const lines = shown((log) => {
    let now = 0;
    const warn = warningsOf(log, 'jobs', () => now);
    for (; now < 120_000; now += 1_000) {
      warn(new Error('away'), 'jobs cannot be read');
      if (now === 30_000) warn(new Error('away'), 'a job was interrupted');
    }
  });
  assert.deepEqual(lines, [
    'WARN  jobs cannot be read part=jobs times=1 error=away',
    'WARN  a job was interrupted part=jobs times=1 error=away',
    'WARN  jobs cannot be read part=jobs times=60 error=away',
  ]);
});

test('an error is shown with its stack below, and secrets stay hidden', () => {
  const [line = '', stack = '', ...more] = shown((log) =>
    log.error(
      { err: Object.assign(new Error('broken'), { code: '23505' }), pin: '1234' },
      'a request failed',
    ),
  );
  assert.equal(line, 'ERROR a request failed pin=[hidden] state=23505');
  assert.equal(stack, '    Error: broken');
  assert.ok(more.length > 0 && more.every((each) => each.startsWith('    at ')));
});

test('control characters in the log are escaped', () => {
  const [line] = shown((log) => log.info({ name: 'a\u001b[2Jb' }, 'x\u202ey\r'));
  assert.equal(line, 'INFO  x\\u{202e}y\\u{d} name=a\\u{1b}[2Jb');
});

test('lines that are written together are split, and text that is not JSON is unchanged', async () => {
  const lines: string[] = [];
  const write = accessLog(createLogger('info', { write: (text) => void lines.push(text) }));
  const call = {
    requestId: 'r-1',
    method: 'POST',
    route: '/api/v2/redeem',
    httpStatus: 200,
    statusCode: '00',
  };
  const none = {
    address: '127.0.0.1',
    merchantId: undefined,
    keyId: undefined,
    principal: undefined,
    transactionId: undefined,
  };
  for (const durationMs of [1.5, 2]) write({ ...call, ...none, durationMs, aborted: false });
  await new Promise(setImmediate);
  const text = stripVTControlCharacters(readableLines(lines.join('')));
  assert.deepEqual(
    text
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(TIME, '')),
    [1.5, 2].map(
      (ms) =>
        `INFO  request requestId=r-1 method=POST route=/api/v2/redeem httpStatus=200 statusCode=00 address=127.0.0.1 durationMs=${ms}`,
    ),
  );
  assert.equal(readableLines('no JSON\n'), 'no JSON\n');
});
