import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { folderOf } from './folder.ts';
import type { Scope } from './scope.ts';
import { ENVIRONMENT } from './scrip.ts';
import { Till } from './till.ts';

export const BIN = fileURLToPath(new URL('../../sdk/bin/scrip-client.mjs', import.meta.url));

type Ran = { readonly status: number; readonly out: string; readonly err: string };

/** Runs commands of the client against the service, each in a process of its own. */
export class Terminal {
  readonly till: Till;
  readonly folder: string;
  readonly env: Record<string, string>;

  private constructor(till: Till, folder: string) {
    const { keyId, secret } = till.merchant;
    this.till = till;
    this.folder = folder;
    this.env = {
      ...ENVIRONMENT,
      HOME: folder,
      LANG: 'de_DE.UTF-8',
      SCRIP_BASE_URL: till.testService.baseUrl,
      SCRIP_KEY_ID: keyId,
      SCRIP_SECRET: secret,
    };
  }

  static async open(t: Scope, wanted?: Parameters<typeof Till.open>[1]): Promise<Terminal> {
    const folder = folderOf(t);
    return new Terminal(await Till.open(t, wanted), folder);
  }

  run(args: readonly string[], { input = '', env = this.env } = {}): Promise<Ran> {
    const { promise, resolve } = Promise.withResolvers<Ran>();
    const child = execFile(process.execPath, [BIN, ...args], { env, cwd: this.folder }, (error, out, err) =>
      resolve({ status: error ? Number(error.code) : 0, out, err }),
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
    return promise;
  }

  async json(args: readonly string[], input = '') {
    const { status, out, err } = await this.run([...args, '--json'], { input });
    assert.equal(status, 0, err);
    return JSON.parse(out);
  }

  async fails(status: number, expected: RegExp, args: readonly string[], how = {}): Promise<Ran> {
    const ran = await this.run(args, how);
    assert.equal(ran.status, status, ran.err);
    assert.match(ran.err, expected);
    return ran;
  }
}
