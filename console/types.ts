/**
 * Writes the types of the answers of the operator API and the portal, and the names of words in answers, from
 * their OpenAPI documents into `console/generated/`: `npm run types -w @scrip/console`, also at the beginning
 * of `npm run check`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { describeApi } from '../src/http/operator/openapi.ts';
import { OPERATOR_APIS } from '../src/http/operator/routes.ts';

const OUT = new URL('generated/', import.meta.url);

/** Collects the names of words, by word, from all schemas of a document. */
function labelsOf(part: unknown): [string, string][] {
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([name, value]) =>
    name === 'x-labels' ? Object.entries(value as Readonly<Record<string, string>>) : labelsOf(value),
  );
}

await mkdir(OUT, { recursive: true });
const labels = new Map<string, string>();
for (const { name, api } of OPERATOR_APIS) {
  const document = JSON.parse(JSON.stringify(describeApi(api)));
  const types = await openapiTS(JSON.stringify(document), { immutable: true });
  await writeFile(new URL(`${name}.d.ts`, OUT), astToString(types));
  for (const [word, label] of labelsOf(document)) labels.set(word, label);
}
const text = JSON.stringify(Object.fromEntries([...labels].sort()), null, 2);
await writeFile(new URL('labels.ts', OUT), `export const labels = ${text};\n`);
