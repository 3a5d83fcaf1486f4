import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { readNavigation, readPages } from '../../docs/site/pages.ts';
import { render } from '../../docs/site/render.ts';
import { buildServer } from '../../src/http/server.ts';
import { serviceWithoutDatabase } from '../support/harness.ts';

/** The documentation site, which `npm ci` builds and the service serves. It is built again here. */

const BUILD = fileURLToPath(new URL('../../docs/site/build.ts', import.meta.url));
let folder: string;

function open(t: TestContext) {
  const service = serviceWithoutDatabase();
  const app = buildServer(service);
  t.after(() => app.close().then(() => service.db.close()));
  return app;
}

const idsOf = (html: string) => new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));

describe('the documentation site', () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'scrip-site-'));
    // Other tests read the built site meanwhile.
    await promisify(execFile)(process.execPath, [BUILD, join(folder, 'dist')]);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it('has every page of the project, and no broken link', async () => {
    const pages = await readPages();
    const site = pathToFileURL(join(folder, 'dist', '/'));
    const files = new Set(await readdir(site, { recursive: true }));
    let links = 0;
    for (const { address, title } of pages.values()) {
      const html = await readFile(new URL(address, site), 'utf8');
      assert.match(html, /<h1 id="/, title);
      assert.doesNotMatch(html, /&lt;!--/, address);
      assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\son\w+="|\sstyle="/, address);
      for (const [, link = ''] of html.matchAll(/ (?:href|src)="([^"]+)"/g)) {
        if (/^[a-z]+:/.test(link)) continue;
        const target = new URL(link, new URL(address, site));
        const file = target.pathname.slice(site.pathname.length);
        assert.ok(files.has(file), `${address} links to ${link}`);
        if (target.hash === '') continue;
        const ids = file === address ? idsOf(html) : idsOf(await readFile(new URL(file, site), 'utf8'));
        assert.ok(ids.has(decodeURIComponent(target.hash.slice(1))), `${address} links to ${link}`);
        links++;
      }
    }
    assert.ok(links > 100);
  });

  it('is not built with an unlisted page or a broken link', async () => {
    const pages = await readPages();
    const page = { path: 'docs/how-to/new.md', address: 'how-to/new.html', title: 'New', text: '# New\n' };
    assert.throws(() => readNavigation(new Map([...pages, [page.path, page]])), /does not list .*new\.md/);
    const text = '# New\n\n[x](gone.md)';
    assert.throws(() => render({ ...page, text }, pages), /new\.md links to gone\.md/);
  });

  it('escapes HTML and unsafe links in the text of a page', async () => {
    const page = { path: 'docs/x.md', address: 'x.html', title: 'X', text: '' };
    const text = '# X\n\n<img src=x onerror=alert(1)> [x](javascript:alert(1)) `<b>`';
    const { html } = render({ ...page, text }, new Map());
    assert.doesNotMatch(html, /<img|<b>|href="javascript/);
  });

  it('is served under /docs/guides with a strict content security policy', async (t) => {
    const app = open(t);
    const found = await app.inject({ url: '/docs/guides/', headers: { 'accept-encoding': 'gzip' } });
    assert.equal(found.statusCode, 200);
    assert.equal(found.headers['content-encoding'], 'gzip');
    const policy = String(found.headers['content-security-policy']);
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.doesNotMatch(policy, /unsafe|https?:/);
    assert.equal((await app.inject({ url: '/docs/guides' })).headers.location, '/docs/guides/');
    for (const url of ['/docs/guides/gone.html', '/docs/guides/how-to', '/docs/guides/%2e%2e%2fpages.ts'])
      assert.equal((await app.inject({ url })).statusCode, 404, url);
  });
});
