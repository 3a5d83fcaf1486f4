import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Scope } from './scope.ts';
import { until } from './until.ts';

/** Servers of others for tests: stand-ins that answer by a function, and those of test/servers/install.sh. */

const INSTALLED = new URL('../servers/installed/', import.meta.url);

/** Answers requests at an address, until the test ends or it is closed. */
export async function standIn(
  t: Scope,
  answer: RequestListener,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  t.after(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Returns the path of what is installed; undefined if it is not, which the test then prints. */
export function findInstalled(t: TestContext, path: string, name: string): string | undefined {
  const found = fileURLToPath(new URL(path, INSTALLED));
  if (existsSync(found)) return found;
  t.diagnostic(`not tested with ${name}: test/servers/install.sh has not installed it`);
  return undefined;
}

/** Starts a server in a process of its own, until the test ends, and waits until it answers. */
export async function startServer(
  t: TestContext,
  url: string,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const child = spawn(program, args, { env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await until(`${program} answers`, () => {
    assert.equal(child.exitCode, null, `${program} has ended`);
    return fetch(url).then(
      () => true,
      () => false,
    );
  });
}

/**
 * Below the deadline of a test file. Go compiles its own library the first time, which takes long on a small
 * busy machine.
 */
const PATIENCE_MS = 90_000;

/**
 * Returns why what a tool runs is not tested here, or false where it is.
 * @param args that make it answer; by default `--version`
 */
export function whyNot(tool: string, ...args: readonly string[]): string | false {
  try {
    execFileSync(tool, args.length > 0 ? args : ['--version'], { stdio: 'ignore', timeout: PATIENCE_MS });
    return false;
  } catch {
    return `${tool} is not installed here, or not ready in time`;
  }
}
