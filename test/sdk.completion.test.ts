import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** What shells complete of the merchant's command line, asked of the shells themselves where they are. */

const BIN = fileURLToPath(new URL('../sdk/bin/scrip-client.mjs', import.meta.url));
const PROGRAM = 'scrip-client';

function run(command: string, args: readonly string[], cwd?: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  execFile(command, args, { cwd, timeout: 60_000 }, (error, out, err) =>
    error ? reject(new Error(`${command}: ${out}${err}`)) : resolve(out),
  );
  return promise;
}

function whyNot(shell: string): string | false {
  try {
    execFileSync(shell, ['--version'], { stdio: 'ignore' });
    return false;
  } catch {
    return `${shell} is not installed here`;
  }
}

/** A folder with the completion of a shell, and a file to complete the name of. */
async function prepare(t: TestContext, shell: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-completion-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, `comp.${shell}`), await run(process.execPath, [BIN, 'completion', shell]));
  await writeFile(join(folder, 'some-file'), '');
  return folder;
}

/** What is typed, and what must be offered for it. */
const TYPED: readonly (readonly [string, readonly string[]])[] = [
  ['re', ['redeem', 'reverse']],
  [
    'redeem --',
    ['--amount', '--reference', '--base-url', '--variant', '--credentials', '--timeout', '--json', '--help'],
  ],
  ['redeem --amount 5 --ref', ['--reference']],
  ['conformance --variant ', ['a', 'b', 'both']],
  ['completion ', ['bash', 'fish', 'zsh']],
  ['generate --out some-', ['some-file']],
];

/** Types into a zsh of its own, whose completion knows no other way to be asked. */
const ZSH = `
zmodload zsh/zpty
zpty -b z env TERM=vt100 zsh -f -i
zpty -w z "PS1='% '; autoload -Uz compinit; compinit -u -D; source ./comp.zsh; setopt no_beep list_rows_first; stty -echo cols 250; echo rea''dy"
until_seen() {
  local seen="" more
  for try in {1..200}; do
    while zpty -rt z more; do seen+="$more"; done
    [[ "$seen" == *"$1"* ]] && break
    sleep 0.05
  done
  print -r -- "$seen"
}
until_seen ready >/dev/null
zpty -n -w z "$1"$'\\t\\t'
until_seen "$2"
zpty -d z
`;

describe('what is completed', () => {
  it('in bash', { skip: whyNot('bash') }, async (t) => {
    const folder = await prepare(t, 'bash');
    for (const [typed, expected] of TYPED) {
      const words = [PROGRAM, ...typed.split(' ')].map((word) => `'${word}'`);
      const script = `source ./comp.bash; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _scrip_client; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const offered = (await run('bash', ['--norc', '-c', script], folder)).trim().split('\n');
      assert.deepEqual(offered.sort(), [...expected].sort(), typed);
    }
  });

  it('in fish', { skip: whyNot('fish') }, async (t) => {
    const folder = await prepare(t, 'fish');
    for (const [typed, expected] of TYPED) {
      const script = `source comp.fish; complete -C'${PROGRAM} ${typed}'`;
      const lines = (await run('fish', ['--no-config', '-c', script], folder)).trim().split('\n');
      assert.deepEqual(lines.map((line) => line.split('\t')[0]).sort(), [...expected].sort(), typed);
    }
  });

  it('in zsh', { skip: whyNot('zsh') }, async (t) => {
    const folder = await prepare(t, 'zsh');
    for (const [typed, expected] of TYPED) {
      // What is offered comes all at once; of several, the last in the order of the alphabet is waited for.
      const last = [...expected].sort().at(-1) as string;
      // Where there is but one, zsh writes what is missing of it.
      const begun = typed.split(' ').at(-1)?.length ?? 0;
      const shownOf = (each: string) => (expected.length > 1 ? each : each.slice(begun));
      const shown = await run('zsh', ['-f', '-c', ZSH, 'zsh', `${PROGRAM} ${typed}`, shownOf(last)], folder);
      for (const each of expected) assert.ok(shown.includes(shownOf(each)), `${typed}: ${each} is not in ${shown}`);
    }
  });
});
