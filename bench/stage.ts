import { spawn } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { freePort } from '../soak/process.ts';
import { authenticate } from '../src/api-keys/authenticate.ts';
import { createMerchant } from '../src/api-keys/create-merchant.ts';
import type { Batch } from '../src/batches/batch.ts';
import { findBatch, readVouchers } from '../src/batches/export.ts';
import { generate } from '../src/batches/generate.ts';
import { openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import type { Context, Operator, Service } from '../src/context.ts';
import { type Embedded, openEmbedded } from '../src/db/embedded.ts';
import { createLogger } from '../src/log.ts';
import type { Caller } from '../src/operation.ts';
import { createToken } from '../src/people/tokens.ts';
import { end, opened, started, temporaryFolder } from '../test/support/leave-nothing.ts';
import { pause } from './figures.ts';
import { basic, type Stock, type Voucher } from './requests.ts';

/**
 * The stage of a benchmark: a service in a process of its own on the embedded database, with everything
 * switched on as in production, with a merchant and its stock. All of it is in a folder that is removed
 * afterwards.
 */

export const MAIN = fileURLToPath(new URL('../bin/scrip.cjs', import.meta.url));
const VOUCHERS = 20_000;
/** The default limit of vouchers that a product may generate at once. */
const MOST_QUANTITY = 100_000;

export type Serve = {
  readonly pid: number;
  readonly url: string;
  readonly readyMs: number;
  stop(): Promise<void>;
};

export class Stage {
  readonly folder: string;
  readonly embedded: Embedded;
  /** As the owner of the database. */
  readonly owner: pg.Client;
  readonly databasePid: number;
  readonly merchantId: number;
  readonly authorization: string;
  readonly #service: Service;
  readonly #context: Context;
  vouchers: readonly Voucher[] = [];
  #quiet: readonly Voucher[] = [];
  #redeemed: readonly string[] = [];
  #batches = 0;

  private constructor(
    made: { folder: string; embedded: Embedded; owner: pg.Client; databasePid: number },
    merchant: { id: number; authorization: string },
    service: Service,
    context: Context,
  ) {
    this.folder = made.folder;
    this.embedded = made.embedded;
    this.owner = made.owner;
    this.databasePid = made.databasePid;
    this.merchantId = merchant.id;
    this.authorization = merchant.authorization;
    this.#service = service;
    this.#context = context;
  }

  /** @param kept a folder that is not removed, and whose database is used if there is one */
  static async open(kept?: string): Promise<Stage> {
    if (kept !== undefined) await mkdir(kept, { recursive: true, mode: 0o700 });
    const folder = kept ?? (await temporaryFolder('scrip-bench-'));
    const log = createLogger('warn');
    const embedded = await opened(
      () => openEmbedded(folder, log),
      ({ release }) => release(),
    );
    const { service } = await opened(
      () =>
        openService(readConfig({ ...settingsIn(folder), SCRIP_PORT: '0' }), {
          name: 'scrip-bench',
          create: true,
          log,
        }),
      ({ close }) => close(),
    );
    const owner = new pg.Client({ connectionString: embedded.ownerUrl }).on('error', () => {});
    await opened(
      () => owner.connect(),
      () => owner.end(),
    );
    await owner.query('set search_path = scrip');
    await owner.query(await readFile(new URL('./yardstick.sql', import.meta.url), 'utf8'));
    const note = await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8');
    const made = await createMerchant(operatorOf(service), {
      name: 'Bench',
      permit: ['update-redemption'],
      opaque: false,
      productId: 1,
      float: { currency: 'USD', amountMinor: 900_000_000_000_000n },
    });
    const authorization = basic(made);
    const { context } = await authenticate(service, authorization);
    const databasePid = Number(note.split('\n')[0]);
    return new Stage(
      { folder, embedded, owner, databasePid },
      { id: made.id, authorization },
      service,
      context,
    );
  }

  /** The context of the merchant, for calls without HTTP. */
  get context(): Context {
    return { ...this.#context, now: this.#service.clock() };
  }

  /** For requests that only an operator can make. */
  get operator(): Operator {
    return operatorOf(this.#service);
  }

  /** Makes a token of the operator, or of a merchant. @returns the header with which it calls */
  async token(input: Parameters<typeof createToken.run>[1]): Promise<string> {
    const principal = {
      kind: 'command-line',
      id: null,
      userId: null,
      name: 'bench',
      roles: ['owner'],
      merchantId: null,
      origin: 'bench',
      requestId: null,
      steppedUp: true,
    } as const;
    const caller = { ...this.operator, principal } as Caller;
    const { token } = await createToken.run(caller, input);
    return `Bearer ${token}`;
  }

  /** Starts the service, and waits until it is ready. */
  serve(
    args: readonly string[] = [],
    node: readonly string[] = [],
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Serve> {
    return serveIn(this.folder, args, node, settings);
  }

  /** Makes the stock. A service has to run, since it produces the batches. */
  async stock(inactive: number, updatable: number, vouchers = VOUCHERS): Promise<Stock> {
    if (this.vouchers.length === 0) {
      this.vouchers = await this.#generate(vouchers, 100_000);
      this.#quiet = await this.#generate(vouchers, 100_000);
      this.#redeemed = await this.#redeem(this.#quiet, vouchers);
    }
    const waiting: Voucher[] = [];
    while (waiting.length < inactive) {
      waiting.push(...(await this.#generate(Math.min(MOST_QUANTITY, inactive - waiting.length), undefined)));
    }
    const references = updatable > 0 ? await this.#redeem(this.vouchers, updatable) : [];
    await this.owner.query('vacuum analyze vouchers, journal');
    return {
      authorization: this.authorization,
      vouchers: shuffle(this.vouchers),
      inactive: shuffle(waiting).values(),
      quiet: shuffle(this.#quiet),
      redeemed: shuffle(this.#redeemed),
      updatable: shuffle(references).values(),
    };
  }

  /** Adds a merchant, which may redeem the vouchers of the first. @returns its credentials */
  async anotherMerchant(): Promise<string> {
    const other = { name: 'Another', permit: [], opaque: false, productId: 1 };
    return basic(await createMerchant(this.operator, other));
  }

  /** Lets batches be as large as the service can make them. */
  async allowLargeBatches(): Promise<void> {
    await this.owner.query('update products set max_quantity = 5000000');
  }

  /** Orders a batch, and waits until the service has produced it. */
  async order(quantity: number, value: number | undefined): Promise<Batch> {
    const reference = `bench-${++this.#batches}`;
    await generate(this.context, { reference, quantity, value });
    let batch = await findBatch(this.context, reference);
    for (; batch.status === 'PROCESSING'; batch = await findBatch(this.context, reference)) await pause(50);
    return batch;
  }

  async #generate(quantity: number, value: number | undefined): Promise<Voucher[]> {
    const batch = await this.order(quantity, value);
    const vouchers: Voucher[] = [];
    for await (const page of readVouchers(this.context.service, batch)) {
      vouchers.push(...page.map(({ code, pin, serialNumber }) => ({ code, pin, serial: serialNumber })));
    }
    return vouchers;
  }

  /**
   * Makes redemptions under unique references by one statement. They are not measured.
   */
  async #redeem(vouchers: readonly Voucher[], count: number): Promise<string[]> {
    const prefix = `past-${++this.#batches}`;
    await this.owner.query('select bench.redeem_many($1, $2, $3, $4)', [
      this.merchantId,
      vouchers.map(({ serial }) => serial),
      prefix,
      count,
    ]);
    return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  }
}

function operatorOf(service: Service): Operator {
  return {
    service,
    actor: { kind: 'command-line', id: null, requestId: null, name: 'bench', origin: 'bench', reason: null },
  };
}

/** Starts a service on a data folder, and waits until it is ready. */
export async function serveIn(
  folder: string,
  args: readonly string[],
  node: readonly string[] = [],
  settings: Readonly<Record<string, string>> = {},
): Promise<Serve> {
  const port = await freePort();
  const startedAt = performance.now();
  // The access log is on, as in production, but is not kept.
  const env = { ...settingsIn(folder), SCRIP_PORT: String(port), ...settings };
  const child = started(() =>
    spawn(process.execPath, [...node, MAIN, 'serve', ...args], { env, stdio: 'ignore' }),
  );
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/readyz`).catch(() => undefined))?.ok) {
    const status = child.exitCode ?? child.signalCode;
    if (status !== null) throw new Error(`the service ended with status ${status}`);
    await pause(5);
  }
  return { pid: child.pid as number, url, readyMs: performance.now() - startedAt, stop: () => end(child) };
}

/** The settings of a process on a data folder. */
export const settingsIn = (folder: string): NodeJS.ProcessEnv => ({
  ...process.env,
  SCRIP_DATA_DIR: folder,
  SCRIP_DATABASE_URL: '',
  SCRIP_KEYS: '',
});

/** Shuffles rows, so that consecutive requests do not use neighboring rows. */
export function shuffle<T>(all: readonly T[]): T[] {
  const shuffled = [...all];
  for (let at = shuffled.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1));
    [shuffled[at], shuffled[other]] = [shuffled[other] as T, shuffled[at] as T];
  }
  return shuffled;
}
