import { mkdtempSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from './scope.ts';

/** A folder that is removed at the end of a test, or of all tests of a file. */
export function folderOf(t: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'scrip-folder-'));
  // A killed process may have left children that still write to it.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

/** A file in a folder that is removed at the end of the test. */
export async function fileOf(t: Scope, name: string, content: string | Buffer): Promise<string> {
  const file = join(folderOf(t), name);
  await writeFile(file, content);
  return file;
}
