/** Writes the generated documents: `npm run docs:generate`. A test fails where they are stale. */
import { mkdir, writeFile } from 'node:fs/promises';
import { generatedDocuments } from './generate/documents.ts';
import { snippetPages } from './generate/snippets.ts';

for (const { path, text } of [...generatedDocuments(), ...snippetPages()]) {
  const target = new URL(`reference/${path}`, import.meta.url);
  await mkdir(new URL('./', target), { recursive: true });
  await writeFile(target, text);
}
