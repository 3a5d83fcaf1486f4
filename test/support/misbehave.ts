import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Verdict } from '../../conformance/src/misbehave.ts';

/** Runs the misbehaving server of the conformance kit, and clients against it. */

const KIT = fileURLToPath(new URL('../../conformance/bin/scrip-conformance.mjs', import.meta.url));

export type Misbehaving = {
  /** What the clients need, as environment variables. */
  readonly settings: Readonly<Record<string, string>>;
  /** Waits for the verdict. @returns also the exit status of the kit */
  verdict(): Promise<Verdict & { readonly status: number }>;
};

export async function startMisbehaving(t: TestContext, calls: number, seed = 1): Promise<Misbehaving> {
  const args = [KIT, '--misbehave', '--json', '--calls', String(calls), '--seed', String(seed)];
  const kit = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => kit.kill());
  const ended = once(kit, 'exit');
  const lines = createInterface(kit.stdout)[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value ?? assert.fail('the kit has ended'));
  const settings = await next();
  return {
    settings,
    async verdict() {
      const verdict = await next();
      const [status] = await ended;
      return { ...verdict, status };
    },
  };
}

/** Runs a client against the server, to its end. @returns its exit status */
export async function runClient(
  command: string,
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<number | null> {
  const env = { PATH: process.env['PATH'], ...settings };
  const client = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'], env });
  const [status] = await once(client, 'exit');
  return status;
}
