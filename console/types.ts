/**
 * Writes the types of the answers of the operator API and the portal, from their OpenAPI documents, into
 * `console/generated/`: `npm run types -w @scrip/console`, also at the beginning of `npm run check`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { describeApi } from '../src/http/operator/openapi.ts';
import { OPERATOR_APIS } from '../src/http/operator/routes.ts';

const OUT = new URL('generated/', import.meta.url);

await mkdir(OUT, { recursive: true });
for (const { name, api } of OPERATOR_APIS) {
  const types = await openapiTS(JSON.stringify(describeApi(api)), { immutable: true });
  await writeFile(new URL(`${name}.d.ts`, OUT), astToString(types));
}
