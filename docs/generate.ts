/** Writes the documents that are made from the interface itself: `npm run docs:generate`. A test keeps them from going stale. */
import { mkdir, writeFile } from 'node:fs/promises';
import { publicDocuments } from '../src/http/documents.ts';
import { snippetPages } from './snippets.ts';

for (const { path, text } of [...publicDocuments(), ...snippetPages()]) {
  const target = new URL(`reference/${path}`, import.meta.url);
  await mkdir(new URL('./', target), { recursive: true });
  await writeFile(target, text);
}
