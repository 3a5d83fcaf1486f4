import assert from 'node:assert/strict';
import { appendFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { before, describe, it, type TestContext } from 'node:test';
import { basic, emptyDatabase } from '../support/harness.ts';
import { Installation } from '../support/installation.ts';
import { asOwner } from '../support/owner.ts';
import { ofFile } from '../support/scope.ts';
import { typed } from '../support/scrip.ts';

/** `scrip db dump` and `scrip db load`, which move a database to another place or version of PostgreSQL. */

let installation: Installation;
let baseUrl: string;
let authorization: string;
let voucher: { code: string; pin: string };
const t = ofFile();

async function call(path: string, body: object) {
  const headers = { authorization, 'content-type': 'application/json' };
  const response = await fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await response.json()) as {
    statusCode: string;
    data: { vouchers: { code: string; pin: string }[] };
  };
}

before(async () => {
  installation = await Installation.make(t);
  baseUrl = await installation.serve();
  const merchant = await installation.json`merchant create --name ${'Kiosk \\N Aé'} --float 1000`;
  authorization = basic(merchant.keyId, merchant.secret);
  const { data } = await call('/api/v2/vouchers', { quantity: 3, value: 50, reference: 'order' });
  voucher = data.vouchers[0] ?? assert.fail();
  await call('/merchant-client/v2/redeem', { ...voucher, amount: 12.5, reference: 'sale' });
  await installation.fails(/stop `scrip serve` and `scrip work`/, typed`db dump ${installation.at('early')}`);
  await installation.stop();
  await installation.json`db dump ${installation.at('dump')}`;
});

async function rowsOf(dump: string): Promise<Map<string, string[]>> {
  const names = (await readdir(dump)).filter((name) => name.endsWith('.copy'));
  const read = async (name: string) => (await readFile(`${dump}/${name}`, 'utf8')).split('\n').sort();
  return new Map(await Promise.all(names.map(async (name) => [name, await read(name)] as const)));
}

describe('a dump', () => {
  it('is not replaced by another one that is made at the same time', async () => {
    const make = () => installation.run(typed`db dump ${installation.at('twice')}`);
    const [one, other] = (await Promise.all([make(), make()])).sort(
      (a, b) => Number(a.status) - Number(b.status),
    );
    assert.deepEqual([one?.status, other?.status], [0, 5]);
    assert.match(String(other?.err), /twice is not empty: name a new one/);
    assert.ok((await readdir(installation.at('twice'))).includes('manifest.json'));
  });

  it('is loaded into a new data folder with the same rows, and the service works there', async () => {
    const moved = { SCRIP_DATA_DIR: installation.at('moved') };
    await installation.fails(
      /there is no key ring to prove that this is unchanged/,
      typed`db load ${installation.at('dump')}`,
      moved,
    );
    await mkdir(moved.SCRIP_DATA_DIR, { mode: 0o700 });
    await cp(installation.at('data', 'keys'), installation.at('moved', 'keys'));
    const loaded = await installation.run(typed`db load ${installation.at('dump')}`, moved);
    assert.equal(loaded.status, 0, loaded.err);
    assert.match(loaded.out, /The books agree/);
    await installation.run(typed`db dump ${installation.at('again')}`, moved);
    assert.deepEqual(await rowsOf(installation.at('again')), await rowsOf(installation.at('dump')));
    await installation.fails(/holds data already/, typed`db load ${installation.at('dump')}`, moved);

    installation.settings['SCRIP_DATA_DIR'] = moved.SCRIP_DATA_DIR;
    baseUrl = await installation.serve();
    const redeem = { ...voucher, amount: 12.5, reference: 'sale' };
    assert.equal((await call('/merchant-client/v2/redeem', redeem)).statusCode, '00', 'a replay');
    assert.equal((await call('/merchant-client/v2/redeem', { ...redeem, amount: 37 })).statusCode, '94');
    // New vouchers get serial numbers of their own.
    const more = await call('/api/v2/vouchers', { quantity: 3, value: 1, reference: 'more' });
    assert.equal(more.statusCode, '00');
    assert.equal((await installation.json('reconcile')).ok, true);
    await installation.stop();
    installation.settings['SCRIP_DATA_DIR'] = installation.at('data');
  });

  it('is refused when it is damaged or incomplete, before anything is changed', async (t) => {
    const { url } = await emptyDatabase(t as TestContext);
    const settings = { SCRIP_DATABASE_URL: url };
    const broken = installation.at('broken');
    const load = (expected: RegExp, ...options: string[]) =>
      installation.fails(expected, typed`db load ${broken} ${options}`, settings);
    await load(/is not a dump/);
    await cp(installation.at('dump'), broken, { recursive: true });
    await appendFile(`${broken}/scrip.journal.copy`, 'x\n');
    await load(/damaged: scrip\.journal\.copy differs from its checksum/);
    await rm(`${broken}/scrip.journal.copy`);
    await load(/damaged: scrip\.journal\.copy cannot be read \(ENOENT\)/);
    const manifest = await readFile(`${broken}/manifest.json`, 'utf8');
    await cp(installation.at('dump'), broken, { recursive: true });
    await writeFile(`${broken}/manifest.json`, manifest.replace(/"digest": "../, '"digest": "zz'));
    await load(/the dump .* was changed after it was written: use another copy/);
    await load(/has a schema \(001-core\.sql\) that this version of Scrip does not know/, '--trust');
    await writeFile(`${broken}/manifest.json`, manifest.slice(0, 100));
    await load(/manifest\.json that this version of Scrip cannot read/, '--trust');
    await rm(`${broken}/manifest.json.hmac`);
    await load(/nothing proves who wrote the dump/);
    assert.deepEqual(await asOwner(url, "select from pg_class where relname = 'merchants'"), []);
    // The same dump is also loaded into a server that Scrip does not run.
    const moved = await installation.run(typed`db load ${installation.at('dump')}`, settings);
    assert.equal(moved.status, 0, moved.err);
  });

  it('is written to a new folder only', async () => {
    await installation.fails(/is not empty/, typed`db dump ${installation.at('dump')}`);
    await installation.fails(
      /cannot be used \(ENOTDIR\)/,
      typed`db dump ${installation.at('data', 'keys', 'x')}`,
    );
    await installation.fails(/there is no Scrip database/, typed`db dump ${installation.at('x')}`, {
      SCRIP_DATA_DIR: installation.at('nothing'),
    });
  });
});
