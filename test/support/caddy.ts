import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../soak/process.ts';
import { folderOf } from './folder.ts';
import { until } from './until.ts';

const CADDY = fileURLToPath(new URL('../servers/installed/caddy/usr/bin/caddy', import.meta.url));
const CADDYFILE = fileURLToPath(new URL('../../deploy/caddy/Caddyfile', import.meta.url));

export async function isCaddyInstalled(t: TestContext): Promise<boolean> {
  const isInstalled = await access(CADDY).then(
    () => true,
    () => false,
  );
  if (!isInstalled) t.diagnostic('not tested with Caddy: test/servers/install.sh has not installed it');
  return isInstalled;
}

/** Starts Caddy with the file of deploy/. @returns its address */
export async function startCaddy(t: TestContext, upstreams: readonly string[]): Promise<string> {
  const home = folderOf(t);
  const url = `http://127.0.0.1:${await freePort()}`;
  const env = {
    HOME: home,
    // With http, since a certificate would need a name.
    SCRIP_DOMAIN: url,
    SCRIP_UPSTREAMS: upstreams.join(' '),
    CADDY_ADMIN: `127.0.0.1:${await freePort()}`,
  };
  const args = ['run', '--config', CADDYFILE, '--adapter', 'caddyfile'];
  const child = spawn(CADDY, args, { env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill();
    await ended;
  });
  await until('Caddy has started', async () => {
    if (child.exitCode !== null) throw new Error('Caddy has ended');
    return (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200;
  });
  return url;
}
