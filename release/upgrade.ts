/**
 * `npm run upgrade [-- COMMIT]`: an upgrade from an earlier commit, by default the last release before this
 * one, and the way back. The old program makes a data folder with the history of the demo. Tills redeem while
 * the program of this work tree takes its place. Each redemption that was acknowledged must be there, once.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Command } from 'commander';
import { freePort } from '../soak/process.ts';
import { STATUS } from '../src/cli/output.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const run = promisify(execFile);
const TILLS = 4;
const LOAD_MS = 5_000;
const AGAIN_MS = 200;
const REPEATS = 5;
const START_MS = 300_000;
/** A registry that stops answering would keep npm for ever, which then ignores SIGTERM. */
const INSTALL = { timeout: 300_000, killSignal: 'SIGKILL' } as const;

const say = (text: string) => console.log(text);

/** Checks the old commit out, with packages of its own if its lockfile differs. */
async function checkOut(commit: string, folder: string): Promise<void> {
  await run('git', ['worktree', 'add', '--detach', folder, commit], { cwd: ROOT });
  const [own, old] = await Promise.all(
    [ROOT, folder].map((each) => readFile(join(each, 'package-lock.json'), 'utf8')),
  );
  if (own !== old) {
    say('its packages differ from those of this work tree: npm ci');
    // Most of them are in the cache since those of this work tree were installed.
    const install = () => run('npm', ['ci', '--prefer-offline'], { cwd: folder, ...INSTALL });
    await install().catch(install);
    return;
  }
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, '@scrip'), { recursive: true });
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (name !== '@scrip' && name !== '.cache')
      await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  for (const name of ['embedded', 'print']) await symlink(join(folder, name), join(modules, '@scrip', name));
}

/** The program of a work tree, on the data folder. */
class Program {
  readonly #root: string;
  readonly #settings: NodeJS.ProcessEnv;
  #service: ChildProcess | undefined;

  constructor(root: string, settings: NodeJS.ProcessEnv) {
    this.#root = root;
    this.#settings = settings;
  }

  #spawn(...args: string[]): ChildProcess {
    return spawn(process.execPath, [join(this.#root, 'src', 'main.ts'), ...args], {
      env: { ...process.env, ...this.#settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** Runs a command. @returns its exit status and what it printed */
  async try(...args: string[]): Promise<{ status: number | null; out: string }> {
    const child = this.#spawn(...args);
    let out = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text) => {
        out += text;
      });
    const [status] = (await once(child, 'close')) as [number | null];
    return { status, out };
  }

  /** Runs a command that must succeed, again while the database of a busy machine does not answer. */
  async command(...args: string[]): Promise<string> {
    let { status, out } = await this.try(...args);
    for (let left = REPEATS; left > 0 && status === STATUS.unavailable; left--)
      ({ status, out } = await this.try(...args));
    if (status !== 0) throw new Error(`scrip ${args.join(' ')} ended with ${status}: ${out}`);
    return out;
  }

  /** Starts the service, and waits until it serves. */
  async serve(url: string, ...options: string[]): Promise<void> {
    const child = this.#spawn('serve', ...options);
    this.#service = child;
    let out = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text) => {
        out = `${out}${text}`.slice(-10_000);
      });
    const until = performance.now() + START_MS;
    while (!(await fetch(`${url}/readyz`).catch(() => undefined))?.ok) {
      if (child.exitCode !== null || performance.now() > until) throw new Error(`it does not serve: ${out}`);
      await sleep(AGAIN_MS);
    }
  }

  async stop(): Promise<void> {
    const child = this.#service;
    if (!child || child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

type Card = { readonly code: string; readonly pin: string };
type Answer = { readonly statusCode: string; readonly data: { transactionId: string; balance: number } };

/** Tills of a merchant, each with a card, which repeat each redemption until it is answered. */
class Tills {
  readonly #url: string;
  readonly #authorization: string;
  /** The redemptions that were acknowledged: their ids by reference. */
  readonly #acknowledged = new Map<string, { readonly card: Card; readonly id: string }>();
  readonly #cards: Card[] = [];
  #isOver = false;

  constructor(url: string, { keyId, secret }: { keyId: string; secret: string }) {
    this.#url = url;
    this.#authorization = `Basic ${btoa(`${keyId}:${secret}`)}`;
  }

  async #call(path: string, body: object): Promise<Answer> {
    const headers = { authorization: this.#authorization, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    for (;;) {
      const answer = await fetch(`${this.#url}/api/v2${path}`, init)
        .then((each) => each.json() as Promise<Answer>)
        .catch(() => undefined);
      if (answer?.statusCode === '00') return answer;
      if (answer && answer.statusCode !== '91') throw new Error(`${path}: ${JSON.stringify(answer)}`);
      await sleep(AGAIN_MS);
    }
  }

  async order(): Promise<void> {
    const order = { reference: 'cards', quantity: TILLS, value: 1_000 };
    const { data } = await this.#call('/vouchers', order);
    this.#cards.push(...(data as unknown as { vouchers: Card[] }).vouchers);
  }

  #redeem({ code, pin }: Card, reference: string): Promise<Answer> {
    return this.#call('/redeem', { voucherCode: code, pin, amount: 0.01, reference });
  }

  /** Redeems until `end` is called. */
  sell(): { end(): Promise<void> } {
    this.#isOver = false;
    const begun = Date.now();
    const selling = this.#cards.map(async (card, till) => {
      for (let sale = 0; !this.#isOver; sale++) {
        const reference = `${begun}-${till}-${sale}`;
        const { data } = await this.#redeem(card, reference);
        this.#acknowledged.set(reference, { card, id: data.transactionId });
      }
    });
    return {
      end: async () => {
        this.#isOver = true;
        await Promise.all(selling);
      },
    };
  }

  /**
   * Repeats redemptions: each must be there once, with its id, and nothing else on the cards.
   * @param unanswered how many others may be booked, whose answers were lost
   */
  async prove(references: readonly string[], unanswered: number): Promise<void> {
    for (const reference of references) {
      const { card, id } = this.#acknowledged.get(reference) as { card: Card; id: string };
      const { data } = await this.#redeem(card, reference);
      if (data.transactionId !== id) throw new Error(`${reference} was booked a second time`);
    }
    let cents = 0;
    for (const { code, pin } of this.#cards) {
      const { data } = await this.#call('/balance', { voucherCode: code, pin });
      cents += 100_000 - Math.round(data.balance * 100);
    }
    if (cents < references.length || cents > references.length + unanswered)
      throw new Error(`${references.length} redemptions were acknowledged, and ${cents} are booked`);
  }

  references(): string[] {
    return [...this.#acknowledged.keys()];
  }
}

/** What an upgrade is checked by, and a restore after it. */
const CHECKS = [
  ['reconcile', '--full'],
  ['books', 'verify'],
  ['audit', 'verify'],
] as const;

async function check(program: Program): Promise<void> {
  for (const words of CHECKS) await program.command(...words);
}

async function upgrade(folder: string, commit: string): Promise<void> {
  const backups = join(folder, 'backups');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = {
    SCRIP_DATA_DIR: join(folder, 'data'),
    SCRIP_ARCHIVE_DIR: join(folder, 'archive'),
    SCRIP_PORT: String(port),
    SCRIP_LOG_LEVEL: 'warn',
  };
  await Promise.all([backups, settings.SCRIP_ARCHIVE_DIR].map((each) => mkdir(each)));
  const oldRoot = join(folder, 'old');
  await checkOut(commit, oldRoot);
  const [old, next] = [new Program(oldRoot, settings), new Program(ROOT, settings)];
  try {
    say(`${commit}: making a data folder with the history of the demo`);
    await old.serve(url, '--demo', '--processes', '1');
    const words = ['merchant', 'create', '--name', 'Upgrade', '--float', '10000', '--json'];
    // The demo has people, two of whom would have to make a key that orders vouchers.
    const made = await old.command(...words, '--break-glass', '--reason', 'an upgrade');
    const tills = new Tills(url, JSON.parse(made));
    await tills.order();
    const selling = tills.sell();
    await sleep(LOAD_MS);
    await old.command('backup', backups);
    await old.stop();
    const before = tills.references();
    const stoppedAt = new Date();
    await next.serve(url, '--processes', '1');
    say(`upgraded: served again after ${((Date.now() - stoppedAt.getTime()) / 1_000).toFixed(1)} s`);
    await sleep(LOAD_MS);
    await selling.end();
    await tills.prove(tills.references(), 0);
    await check(next);
    say(
      `${tills.references().length} redemptions under load, each there once; the books and the audit agree`,
    );
    await next.stop();
    await goBack(old, url, { backups, before, stoppedAt, tills });
  } finally {
    await Promise.all([old.stop(), next.stop()]);
    await run('git', ['worktree', 'remove', '--force', oldRoot], { cwd: ROOT });
  }
}

type Past = {
  readonly backups: string;
  readonly before: readonly string[];
  readonly stoppedAt: Date;
  readonly tills: Tills;
};

async function goBack(old: Program, url: string, { backups, before, stoppedAt, tills }: Past): Promise<void> {
  const refused = await old.serve(url, '--processes', '1').then(
    () => undefined,
    (error: Error) => error.message.trim(),
  );
  say(`the old program on the new schema: ${refused ?? 'serves'}`);
  if (refused === undefined) await tills.prove(tills.references(), 0);
  await old.stop();
  await old.command('restore', backups, '--replace', '--to', stoppedAt.toISOString());
  await old.serve(url, '--processes', '1');
  await tills.prove(before, TILLS);
  await check(old);
  say(`restored to the moment before: ${before.length} redemptions, each there once; the books agree`);
  await old.stop();
}

/** Finds the commit of the last release before this one. If a shallow clone lacks it, says so, and ends. */
async function findRelease(): Promise<string> {
  // The subject of a release's commit (run.ts), since not every clone has the tags.
  const args = ['log', '-1', '--format=%H', '--extended-regexp', '--grep=^Release [0-9]+\\.', 'HEAD^'];
  const { stdout } = await run('git', args, { cwd: ROOT }).catch(() => ({ stdout: '' }));
  if (stdout !== '') return stdout.trim();
  say('no upgrade was tried, since this clone does not have the commit of an earlier release');
  process.exit();
}

const program = new Command('npm run upgrade --')
  .description('Upgrade from an earlier commit under load, and go back.')
  .argument('[commit]', 'the earlier commit (default: the last release before this one)')
  .parse();
const commit = program.args[0] ?? (await findRelease());
const folder = await mkdtemp(join(tmpdir(), 'scrip-upgrade-'));
try {
  await upgrade(folder, commit);
} catch (error) {
  say((error as Error).message);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
