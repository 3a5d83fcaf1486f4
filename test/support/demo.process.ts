import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** Starts a demo in a folder. @returns its one-time link, and how to end it */
export async function startDemo(folder: string) {
  const settings = {
    SCRIP_DATA_DIR: folder,
    SCRIP_PORT: '0',
    SCRIP_LOG_LEVEL: 'warn',
    SCRIP_DRAIN_SECONDS: '0',
  };
  const env = { ...process.env, ...settings, SCRIP_DATABASE_URL: undefined };
  const child = spawn(process.execPath, [MAIN, 'serve', '--demo'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const [link] = /http:\/\/localhost:\d+\/console\/sign-in#\S+/.exec(line) ?? [];
    if (!link) continue;
    // What it logs from now on is not read, and must not fill the pipe.
    child.stdout.resume();
    return { link, stop };
  }
  throw new Error('the demo ended before it printed its link');
}
