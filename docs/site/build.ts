/**
 * Builds the documentation as a site, into docs/site/dist: `npm run docs:build`, also at the end of `npm ci`.
 * All links are relative and nothing is loaded from elsewhere, so the folder works on any web server;
 * the service serves it under /docs/guides/.
 */
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import MiniSearch from 'minisearch';
import { generatedDocuments } from '../generate/documents.ts';
import { layOut } from './layout.ts';
import { ROOT, readNavigation, readPages } from './pages.ts';
import { type Rendered, render } from './render.ts';

/** The folder of the site: docs/site/dist, or an argument. */
const OUT = process.argv[2] ?? fileURLToPath(new URL('dist', import.meta.url));
/** Enough to see what a result is about. */
const EXCERPT_LENGTH = 220;

/** The same in search.js. */
const SEARCH = { fields: ['title', 'heading', 'text'], storeFields: ['title', 'heading', 'excerpt'] };

const pages = await readPages();
const sections = readNavigation(pages);
const inProject = (path: string) => fileURLToPath(new URL(path, ROOT));
const rendered = new Map<string, Rendered>();
for (const page of pages.values()) rendered.set(page.path, render(page, pages));

const index = new MiniSearch(SEARCH);
for (const { path, address, title } of pages.values())
  for (const { heading, anchor, text } of rendered.get(path)?.passages ?? [])
    index.add({ id: `${address}#${anchor}`, title, heading, text, excerpt: text.slice(0, EXCERPT_LENGTH) });

// Beside its place first: a service that runs never sees half a site.
const draft = `${OUT}.${process.pid}`;
await rm(draft, { recursive: true, force: true });

async function put(name: string, content: string | Buffer): Promise<void> {
  const file = `${draft}/${name}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
  if (/\.(html|css|js|json|svg)$/.test(name)) await writeFile(`${file}.gz`, gzipSync(content));
}

for (const page of pages.values())
  await put(page.address, layOut(page, rendered.get(page.path) as Rendered, sections));
for (const path of new Set([...rendered.values()].flatMap(({ assets }) => assets)))
  await put(path.slice('docs/'.length), await readFile(inProject(path)));
for (const name of ['site.css', 'text.css', 'search.css', 'search.js', 'icon.svg'])
  await put(`assets/${name}`, await readFile(new URL(`assets/${name}`, import.meta.url)));
const library = createRequire(import.meta.url)
  .resolve('minisearch')
  .replace(/dist\/.*/, 'dist/es/index.js');
for (const { path, text } of generatedDocuments()) await put(`api/${path}`, text);
await put('assets/minisearch.js', await readFile(library));
await put('assets/index.json', JSON.stringify(index));

await rm(OUT, { recursive: true, force: true });
await rename(draft, OUT).catch(() => cp(draft, OUT, { recursive: true }));
await rm(draft, { recursive: true, force: true });
