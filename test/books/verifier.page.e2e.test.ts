import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { inaccessible, openBrowser, whyNoBrowser } from '../support/chromium.ts';
import { PATIENCE_MS } from '../support/until.ts';

/** The page that verifies a proof, opened from a disk. */

const skip = await whyNoBrowser();

test('the page verifies a proof, refuses a changed one, and loads nothing', { skip }, async (t) => {
  const reference = await readFile(new URL('../../docs/reference/proof.md', import.meta.url), 'utf8');
  const [, example = ''] = /^```text\n([\s\S]*?)^```/m.exec(reference) ?? [];
  const context = await openBrowser(t).newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('request', (request) => {
    if (!request.url().startsWith('file:')) faults.push(`it loads ${request.url()}`);
  });
  await page.goto(new URL('../../verifier/verify.html', import.meta.url).href);
  const says = async (text: string, sentence: string) => {
    const file = { name: 'proof.txt', mimeType: 'text/plain', buffer: Buffer.from(text) };
    await page.getByLabel('Proof of closed days').setInputFiles(file);
    await page.getByText(sentence).waitFor();
  };
  await says(example, 'verified: 1 closed day up to 2026-03-02, 4 rows; closing hash 93a2734f');
  await says(
    example.replace('|1000|', '|1001|'),
    'refused: slice 2026-03-02T09:15:00.000Z: a row is not the',
  );
  await says(`\ufeff${example}`, 'refused: the file is no proof');
  await says(example.slice(0, -1), 'refused: the file is cut off: line 12 has no line feed at its end');
  faults.push(...(await inaccessible(page)));
  assert.deepEqual(faults, []);
});
