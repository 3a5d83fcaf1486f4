import { randomInt } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from './leave-nothing.ts';

/** A file in a folder that is removed at the end of the test. */
export async function fileOf(t: TestContext, name: string, content: string | Buffer): Promise<string> {
  const folder = await temporaryFolder('scrip-import-');
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, name);
  await writeFile(file, content);
  return file;
}

/** Random codes, which differ between tests. */
export function codesOf(count: number): string[] {
  const first = randomInt(100_000, 900_000) * 1_000_000;
  return Array.from({ length: count }, (_, index) => String(first + index));
}

/** A file of vouchers over 10.00 each. */
export function csvOf(codes: readonly string[]): string {
  const rows = codes.map(
    (code, index) => `${code},${String(index % 10_000).padStart(4, '0')},10.00,2035-06-30,card-${index}`,
  );
  return `code,pin,balance,expiry,reference\r\n${rows.join('\r\n')}\r\n`;
}
