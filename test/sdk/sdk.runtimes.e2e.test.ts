import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, readdir, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { BATCH_JOBS } from '../../src/batches/fill.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { findNodes, type Installed, installPacked } from '../support/sdk.packed.ts';
import { standIn, whyNot } from '../support/stand-in.ts';
import { Till } from '../support/till.ts';

/**
 * The client, packed and installed, makes the same calls on every runtime: Node, an edge runtime, and
 * those of Deno, Bun and workerd that are on the PATH.
 */

const PROGRAMS = fileURLToPath(new URL('../runtimes/', import.meta.url));

let installed: Installed;
before(async () => {
  installed = await installPacked('sdk');
  await cp(PROGRAMS, installed.folder, { recursive: true });
});
after(() => installed.remove());

function execute(command: string, args: readonly string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  execFile(command, args, { cwd: installed.folder, timeout: 120_000 }, (error, out, err) =>
    error ? reject(new Error(`${command} failed: ${out}${err}`)) : resolve(out + err),
  );
  return promise;
}

const listen = async (t: TestContext, answer: RequestListener) => (await standIn(t, answer)).url;

/** A proxy to the service. The first segment of the path names the fault. */
async function openFaulty(t: TestContext, target: string) {
  let reached = 0;
  const elsewhere = await listen(t, (_request, response) => {
    reached++;
    response.end();
  });
  const seen = new Set<string>();
  const url = await listen(t, async (request, response) => {
    const [, fault = '', path = ''] = /^\/([^/]+)(\/.*)$/.exec(request.url ?? '') ?? [];
    let body = '';
    for await (const piece of request) body += piece;
    if (fault === 'redirect') return response.writeHead(307, { location: elsewhere }).end();
    const isFirst = !seen.has(fault);
    seen.add(fault);
    const isPost = request.method === 'POST';
    if (fault === 'never' && isPost) return request.socket.destroy();
    const { authorization = '', 'content-type': type = '' } = request.headers;
    const answer = await fetch(target + path, {
      ...(isPost && { method: 'POST', body }),
      headers: { authorization, ...(type !== '' && { 'content-type': type }) },
    });
    const text = await answer.text();
    if (isFirst && fault.endsWith('-lost')) return request.socket.destroy();
    if (isFirst && fault === 'answer-late') return undefined;
    const replayed = answer.headers.get('idempotent-replayed');
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      ...(replayed && { 'idempotent-replayed': replayed }),
    });
    if (fault !== 'download-cut') return response.end(text);
    return response.write(text.slice(0, -20), () => request.socket.destroy());
  });
  return { url, reached: () => reached };
}

/** A delivery of the service. */
function delivery() {
  const secret = `whsec_${btoa('a secret of thirty-two bytes, eh')}`;
  const body = JSON.stringify({
    type: 'float.low',
    timestamp: new Date().toISOString(),
    data: { currency: 'EUR', balance: 90.5, threshold: 100 },
  });
  const sentAt = new Date();
  const headers = {
    'webhook-id': 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W',
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', sentAt, body),
  };
  return { body, headers, secret };
}

/** The expected results, the same on every runtime. */
const EXPECTED = {
  batch: { status: 'COMPLETED', codes: 2_500, first: 3, aborted: 'aborted' },
  badNetwork: {
    retried: ['networkFailure', 'timedOut', 'networkFailure'],
    paid: [10.5, true],
    late: [1, true],
    updated: [4, true],
    unknown: [true, 'unknown', null],
    elsewhere: 'invalidResponse',
    broken: 'networkFailure',
    nobody: 'networkFailure',
    balance: 20,
  },
  refused: ['insufficientBalance', '51', 'Le solde de ce bon ne suffit pas pour ce montant.', 'string'],
  inexact: 'invalidAmount',
  inB: [25, 'notFound'],
  webhooks: ['float.low', 90.5, true, true],
  hides: true,
};

/** Runs the calls on a runtime, as a new merchant, and compares the results. */
async function holds(t: TestContext, run: (settings: string) => Promise<string>): Promise<void> {
  const till = await Till.open(t);
  const worker = startJobs(till.testService.service, [BATCH_JOBS]);
  t.after(() => worker.stop());
  const { baseUrl } = till.testService;
  const { keyId, secret } = till.merchant;
  const faulty = await openFaulty(t, baseUrl);
  const settings = {
    ...{ baseUrl, keyId, secret, webhook: delivery() },
    ...{ faultyUrl: faulty.url, closedUrl: 'http://127.0.0.1:9' },
  };
  const out = await run(JSON.stringify(settings));
  const line = out.split('\n').find((each) => each.startsWith('{"batch"')) ?? assert.fail(out);
  assert.deepEqual(JSON.parse(line), EXPECTED);
  assert.equal(faulty.reached(), 0, 'a redirect was followed');
  await till.reconciles();
}

/** Configures workerd: the modules of the package, each under its path, and the settings as a binding. */
async function configureWorkerd(settings: string): Promise<string> {
  const dist = 'node_modules/@scrip/client/dist';
  const names = (await readdir(join(installed.folder, dist))).filter((name) => name.endsWith('.js'));
  const modules = [
    ...['workerd.mjs', 'use.mjs'].map((name) => [name, name]),
    ...names.map((name) => [name === 'index.js' ? '@scrip/client' : `@scrip/${name}`, `${dist}/${name}`]),
  ];
  const listed = modules.map(([name, path]) => `(name = "${name}", esModule = embed "${path}")`);
  await writeFile(
    join(installed.folder, 'workerd.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [
  (name = "main", worker = (
    modules = [${listed.join(', ')}],
    bindings = [(name = "SETTINGS", json = ${JSON.stringify(settings)})],
    compatibilityDate = "2025-01-01")),
  (name = "internet", network = (allow = ["public", "private", "local"])),
]);\n`,
  );
  return join(installed.folder, 'workerd.capnp');
}

describe('the client works the same', () => {
  it('on every installed Node', async (t) => {
    for (const { path, version } of await findNodes()) {
      await holds(t, (settings) => execute(path, ['main.mjs', settings]));
      t.diagnostic(version);
    }
  });

  it('on an edge runtime, which has no API of Node', async (t) => {
    const edge = join(PROGRAMS, 'edge.mjs');
    const { folder } = installed;
    await holds(t, (settings) =>
      execute(process.execPath, ['--experimental-vm-modules', edge, settings, folder]),
    );
  });

  it('on Deno', { skip: whyNot('deno') }, async (t) => {
    await holds(t, (settings) => execute('deno', ['run', '--allow-net=127.0.0.1', 'main.mjs', settings]));
  });

  it('on Bun', { skip: whyNot('bun') }, async (t) => {
    await holds(t, (settings) => execute('bun', ['run', 'main.mjs', settings]));
  });

  it('on workerd', { skip: whyNot('workerd') }, async (t) => {
    await holds(t, async (settings) => execute('workerd', ['test', await configureWorkerd(settings)]));
  });
});
