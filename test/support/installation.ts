import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { STATUS } from '../../src/cli/output.ts';
import { asOwner } from './owner.ts';
import type { Scope } from './scope.ts';
import { type CommandLine, type Ran, runScrip, type Started, startScrip, wordsOf } from './scrip.ts';
import { until } from './until.ts';

/** An installation with an embedded database, operated by the program alone. */

export class Installation {
  /** Removed at the end of the test. */
  readonly folder: string;
  readonly settings: Record<string, string>;
  #serving: Started | undefined;

  private constructor(folder: string) {
    this.folder = folder;
    this.settings = { SCRIP_DATA_DIR: this.at('data'), SCRIP_PORT: '0', SCRIP_LOG_LEVEL: 'warn' };
  }

  static async make(t: Scope): Promise<Installation> {
    const folder = await mkdtemp(join(tmpdir(), 'scrip-installation-'));
    // Where root cannot make user namespaces, the account of the database must be able to reach the folder.
    await chmod(folder, 0o755);
    const installation = new Installation(folder);
    t.after(async () => {
      await installation.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    });
    return installation;
  }

  /** A running installation with a merchant whose float holds 100, and a backup. */
  static async backedUp(t: Scope, ...options: string[]): Promise<Installation> {
    const installation = await Installation.make(t);
    await installation.serve();
    await installation.json`merchant create --name Kiosk --float 100`;
    await installation.json('backup', 'create', installation.at('backups'), ...options);
    return installation;
  }

  async topUp(reference: string): Promise<void> {
    await this.json`float top-up --merchant 1 --amount 1 --reference ${reference}`;
  }

  async balance(): Promise<number> {
    const [float] = await this.json`float show --merchant 1`;
    return float.balance;
  }

  at(...names: string[]): string {
    return join(this.folder, ...names);
  }

  /** Runs a command, by another program if `by` names one. */
  run(
    args: readonly string[],
    settings: Readonly<Record<string, string>> = {},
    by: readonly string[] = [],
  ): Promise<Ran> {
    const all = { ...this.settings, ...settings };
    return by.length > 0 ? startScrip(all, args, by).ended : runScrip(all, ...args);
  }

  async json(...line: CommandLine) {
    const { status, out, err } = await this.run([...wordsOf(line), '--json']);
    assert.equal(status, 0, err);
    return JSON.parse(out);
  }

  /** Runs a statement in its database, by the address that a command prints. */
  async query<Row>(text: string): Promise<Row[]> {
    const { out } = await this.run(['db', 'url']);
    return asOwner<Row>(out.trim(), text);
  }

  /** Runs a command that must fail with a message of one line. */
  async fails(
    expected: RegExp,
    args: readonly string[],
    settings: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { status, out, err } = await this.run(args, settings);
    // Failed, or not started.
    assert.ok(
      status === STATUS.failed || status === STATUS.notStarted,
      `${status} ${args.join(' ')}: ${err}`,
    );
    assert.equal(out, '');
    assert.match(err, /^scrip: [^\n]+\n$/);
    assert.match(err, expected);
  }

  /** Starts the service. @returns its address */
  async serve(...args: string[]): Promise<string> {
    this.#serving = startScrip(this.settings, ['serve', ...(args.length > 0 ? args : ['--processes', '1'])]);
    const { child, printed } = this.#serving;
    return until('it serves', () => {
      const [, url] = /serves (\S+)/.exec(printed.out) ?? [];
      assert.equal(child.exitCode, null, printed.err);
      return printed.out.endsWith('\n\n') && url;
    });
  }

  /** The service that was started last. */
  get serving(): Started {
    return this.#serving ?? assert.fail('nothing was started');
  }

  /** Ends the service, if it runs. @returns its exit status */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number | undefined> {
    // A test that failed may have left it suspended.
    this.#serving?.child.kill('SIGCONT');
    this.#serving?.child.kill(signal);
    return (await this.#serving?.ended)?.status;
  }

  async killDatabase(): Promise<void> {
    const note = await readFile(this.at('data', 'postgres', 'postmaster.pid'), 'utf8');
    process.kill(Number(note.split('\n')[0]), 'SIGKILL');
  }

  /** Kills the service and its database at once, as a power cut does. */
  async crash(): Promise<void> {
    this.serving.child.kill('SIGKILL');
    await this.killDatabase();
    await this.serving.ended;
  }

  /** Kills the service and its database, and deletes their data but for the key ring, kept elsewhere. */
  async lose(): Promise<void> {
    const keys = await readFile(this.at('data', 'keys'));
    await this.crash();
    await rm(this.at('data'), { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    await mkdir(this.at('data'), { mode: 0o700 });
    await writeFile(this.at('data', 'keys'), keys, { mode: 0o600 });
  }
}
