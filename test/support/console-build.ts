import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Whether the console that browser tests open was built from the sources that are there. */

const CONSOLE = fileURLToPath(new URL('../../console/', import.meta.url));
const BUILT = join(CONSOLE, 'dist/.vite/manifest.json');

const changedAt = async (path: string) => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0;

/** @returns why a browser test would open an old console; undefined if it would not */
export async function whyStale(built = BUILT, folders = ['src', 'generated']): Promise<string | undefined> {
  const builtAt = await changedAt(built);
  for (const folder of folders)
    for (const name of await readdir(join(CONSOLE, folder), { recursive: true }))
      if ((await changedAt(join(CONSOLE, folder, name))) > builtAt)
        return `console/${folder}/${name} is newer than console/dist: run npm run build -w @scrip/console first`;
  return undefined;
}
