import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { importBank } from '../../src/bank/import.ts';
import { writePack } from '../../src/cli/pack.ts';
import { openBank, put } from '../support/bank.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { make, rowsOf } from '../support/reports.ts';

test('each closed day shows what is owed beside what the bank holds, and a pack has it with its digests', async (t) => {
  const { ledger, merchantId } = await openBank(t);
  const { service } = ledger.started;
  await put(ledger, merchantId, 123_450n, 'INV-1');
  const bytes = Buffer.from('Buchungstag;Zweck;Betrag\n01.03.2026;INV-1;1.234,50\n', 'latin1');
  await importBank(ledger.operator, { account: 'House', bytes, format: 'csv', mapping: 'house' }, false);
  await ledger.at('2026-03-02T09:00:00Z');
  await ledger.close();
  await put(ledger, merchantId, 10_000n, 'INV-2');
  await ledger.at('2026-03-03T09:00:00Z');
  await ledger.close();
  const interval = { from: '2026-03-01', to: '2026-03-03' };
  const days = rowsOf(await make(service, 'R14', interval));
  assert.deepEqual(
    days.map(({ day, requirement, resource, difference, state }) => [
      ...[day, requirement, resource, difference, state],
    ]),
    [
      ['2026-03-01', '1234.50', '1234.50', '0.00', 'ok'],
      ['2026-03-02', '1334.50', '1234.50', '-100.00', 'SHORTFALL'],
    ],
  );

  const folder = await temporaryFolder('scrip-pack-');
  const files = await writePack(service, interval, folder);
  const sums = (await readFile(join(folder, 'SHA256SUMS'), 'utf8')).trimEnd().split('\n');
  assert.equal(sums.length, files - 1);
  for (const sum of sums) {
    const [digest, name = ''] = sum.split('  ');
    const content = await readFile(join(folder, name));
    assert.equal(createHash('sha256').update(content).digest('hex'), digest, name);
  }
  const [, , second = ''] = (await readFile(join(folder, 'safeguarding.csv'), 'utf8')).split('\r\n');
  assert.match(second, /,USD,2026-03-02,1334\.50,1234\.50,-100\.00,SHORTFALL,/);
  assert.match(await readFile(join(folder, '2026-03/R3.csv'), 'utf8'), /1334\.50/);
});
