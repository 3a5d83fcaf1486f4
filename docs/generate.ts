/**
 * Writes the documents that are made from the program: `npm run docs:generate`. A test finds those that
 * are stale.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { generatedDocuments } from './generate/documents.ts';
import { settingsPage } from './generate/settings.ts';
import { snippetPages } from './generate/snippets.ts';

const documents = [...generatedDocuments(), ...snippetPages(), settingsPage()];
for (const { path, text } of documents) {
  const target = new URL(`reference/${path}`, import.meta.url);
  await mkdir(new URL('./', target), { recursive: true });
  await writeFile(target, text);
}
