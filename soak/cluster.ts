import { execFile } from 'node:child_process';
import { access, chmod, chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openOwner } from '../src/db/pool.ts';
import { raw } from '../src/db/sql.ts';
import { atEnd, opened } from '../test/support/leave-nothing.ts';
import { freePort } from './process.ts';

/**
 * A primary with a standby, of an installed PostgreSQL: the embedded one lacks the programs that copy a
 * server.
 */

const FOLDERS = [18, 17, 16, 15].map((version) => `/usr/lib/postgresql/${version}/bin`);
/** PostgreSQL does not run as root. Debian's package makes this account. */
const ACCOUNT = 'postgres';
const PASSWORD = 'soak';
export const STANDBY_NAME = 'scrip_standby';
/** A server without a standby waits for none. */
const ALONE = "synchronous_standby_names = ''";

const run = promisify(execFile);

export type Programs = { readonly folder: string };

/** The folder of the programs of a PostgreSQL with streaming replication; undefined if none is installed. */
export async function findPrograms(): Promise<Programs | undefined> {
  for (const folder of FOLDERS) {
    try {
      await access(join(folder, 'pg_basebackup'));
      await access(join(folder, 'postgres'));
      return { folder };
    } catch {}
  }
  return undefined;
}

const isRoot = () => process.getuid?.() === 0;

export class Server {
  readonly #programs: Programs;
  readonly data: string;
  readonly port: number;

  constructor(programs: Programs, data: string, port: number) {
    this.#programs = programs;
    this.data = data;
    this.port = port;
  }

  url(user = ACCOUNT, database = 'postgres'): string {
    return `postgres://${user}:${PASSWORD}@127.0.0.1:${this.port}/${database}`;
  }

  /** Runs a program of PostgreSQL under an account that it accepts. */
  async #run(program: string, ...args: string[]): Promise<void> {
    const path = join(this.#programs.folder, program);
    const options = { env: { ...process.env, PGPASSWORD: PASSWORD }, cwd: '/' };
    if (isRoot()) await run('runuser', ['-u', ACCOUNT, '--', path, ...args], options);
    else await run(path, args, options);
  }

  /** The same; the end of the run waits until it is done. */
  #do(program: string, ...args: string[]): Promise<void> {
    return opened(() => this.#run(program, ...args));
  }

  /** @param settings lines of its configuration file */
  async create(settings: readonly string[], auth = 'scram-sha-256'): Promise<void> {
    const passwordFile = `${this.data}.password`;
    await writeFile(passwordFile, PASSWORD, { mode: 0o644 });
    const options = [`--auth=${auth}`, `--pwfile=${passwordFile}`, '--encoding=UTF8', '--locale=C'];
    await this.#do('initdb', '-D', this.data, '-U', ACCOUNT, ...options);
    await this.#configure(settings);
  }

  /** Copies a running server, and follows it from then on. */
  async follow(primary: Server): Promise<void> {
    const from = `host=127.0.0.1 port=${primary.port} user=${ACCOUNT} password=${PASSWORD} application_name=${STANDBY_NAME}`;
    await this.#do('pg_basebackup', '-D', this.data, '-d', from, '-R', '-X', 'stream', '-c', 'fast');
    // For the time after its promotion.
    await this.#configure([ALONE]);
  }

  /** Copies a running server, whose log is archived from then on, into the folder of this one. */
  async copy(running: Server): Promise<void> {
    const from = `host=127.0.0.1 port=${running.port} user=${ACCOUNT} password=${PASSWORD}`;
    await this.#do('pg_basebackup', '-D', this.data, '-d', from, '-X', 'stream', '-c', 'fast');
    await this.#configure([ALONE]);
  }

  /** Starts a copy, which replays the archived log up to a restore point. */
  async restore(archive: string, point: string): Promise<void> {
    await this.#configure([
      `restore_command = 'cp ${archive}/%f %p'`,
      `recovery_target_name = '${point}'`,
      "recovery_target_action = 'promote'",
    ]);
    await writeFile(join(this.data, 'recovery.signal'), '');
    await this.start();
  }

  async #configure(lines: readonly string[]): Promise<void> {
    const file = join(this.data, 'postgresql.conf');
    const common = [
      `port = ${this.port}`,
      "listen_addresses = '127.0.0.1'",
      `unix_socket_directories = '${this.data}'`,
    ];
    await writeFile(file, `${await readFile(file, 'utf8')}\n${[...common, ...lines].join('\n')}\n`);
  }

  /** Starts the server, which is stopped at the end of the run. */
  async start(): Promise<void> {
    atEnd(() => this.stop());
    await this.#do('pg_ctl', '-D', this.data, '-w', '-l', `${this.data}.log`, 'start');
  }

  /**
   * Starts the server after `kill`. It recovers from its log, as after a power cut. The processes of the old
   * server may take a moment to end.
   */
  async restart(): Promise<void> {
    const start = () =>
      this.#do('pg_ctl', '-D', this.data, '-w', '-t', '120', '-l', `${this.data}.log`, 'start');
    for (let left = 30; ; left--) {
      try {
        return await start();
      } catch (error) {
        if (left === 0) throw error;
        await sleep(500);
      }
    }
  }

  /** Promotes the standby, which accepts writes when this returns. */
  async promote(): Promise<void> {
    await this.#do('pg_ctl', '-D', this.data, '-w', 'promote');
  }

  /**
   * Kills the server as a power cut does: none of its processes can do anything more. A process that outlived
   * the first one could still commit on a worker of Citus.
   */
  async kill(): Promise<void> {
    const pid = Number((await readFile(join(this.data, 'postmaster.pid'), 'utf8')).split('\n')[0]);
    process.kill(pid, 'SIGSTOP'); // it starts no further process
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).match(/\d+/g) ?? [];
    for (const each of [...children.map(Number), pid]) process.kill(each, 'SIGKILL');
  }

  async stop(): Promise<void> {
    await this.#run('pg_ctl', '-D', this.data, '-m', 'immediate', 'stop').catch(() => {});
  }
}

/** Starts a standby of a running server, which each of its commits waits for from then on. */
export async function startStandby(programs: Programs, server: Server): Promise<Server> {
  const standby = new Server(programs, `${server.data}.standby`, await freePort());
  await standby.follow(server);
  await standby.start();
  const owner = await openOwner(server.url());
  await owner.query(raw(`alter system set synchronous_standby_names = '${STANDBY_NAME}'`));
  await owner.query(raw('select pg_reload_conf()'));
  await owner.close();
  return standby;
}

/** Makes a folder below another one that the account of the servers may write to. */
export async function makeDataFolder(folder: string): Promise<string> {
  const data = join(folder, 'cluster');
  await mkdir(data);
  if (isRoot()) {
    await chmod(folder, 0o755);
    const { stdout } = await run('id', ['-u', ACCOUNT]);
    await chown(data, Number(stdout), 0);
  }
  return data;
}

/** Starts two servers below a folder. The second one follows the first, synchronously or not. */
export async function startCluster(
  programs: Programs,
  folder: string,
  isAsync: boolean,
): Promise<readonly [Server, Server]> {
  const data = await makeDataFolder(folder);
  const primary = new Server(programs, join(data, 'one'), await freePort());
  const standby = new Server(programs, join(data, 'two'), await freePort());
  await primary.create([
    'wal_level = replica',
    'max_wal_senders = 4',
    'synchronous_commit = on',
    `synchronous_standby_names = '${isAsync ? '' : `ANY 1 (${STANDBY_NAME})`}'`,
  ]);
  await primary.start();
  await standby.follow(primary);
  await standby.start();
  return [primary, standby];
}
