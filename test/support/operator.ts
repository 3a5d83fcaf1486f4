import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { after, before } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { findBatch, readVouchers } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { startTestService, type TestService } from './harness.ts';
import type { ListOf } from './list.ts';
import { type CommandLine, type Ran, runScrip, startScrip, wordsOf } from './scrip.ts';

/** Runs commands of an operator beside a service on the same database. */
export class Operator {
  #testService: TestService | undefined;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #isFresh: boolean;

  private constructor(
    testService: TestService | undefined,
    settings: Readonly<Record<string, string>>,
    isFresh = false,
  ) {
    this.#testService = testService;
    this.#settings = settings;
    this.#isFresh = isFresh;
  }

  /**
   * An operator of a service of its own, for the tests of a file.
   * @param settings environment variables beside those of the database
   */
  static ofTests(settings: Readonly<Record<string, string>> = {}): Operator {
    const operator = new Operator(undefined, settings);
    before(async () => {
      operator.#testService = await startTestService();
    });
    after(() => operator.#testService?.stop());
    return operator;
  }

  get testService(): TestService {
    return this.#testService ?? assert.fail('the service has not started');
  }

  /**
   * The operator of a running service.
   * @param isFresh whether each command runs in a new process
   */
  static at(
    testService: TestService,
    settings: Readonly<Record<string, string>>,
    isFresh?: boolean,
  ): Operator {
    return new Operator(testService, settings, isFresh);
  }

  /** Runs `scrip` to its end. */
  run(...line: CommandLine): Promise<Ran> {
    return this.#isFresh ? this.start(...line).ended : runScrip(this.#environment(), ...wordsOf(line));
  }

  /** Starts `scrip` in a new process, for example to send it signals. */
  start(...line: CommandLine) {
    return startScrip(this.#environment(), wordsOf(line));
  }

  #environment(): Record<string, string> {
    return {
      SCRIP_DATABASE_URL: this.testService.url,
      SCRIP_KEYS: this.testService.keys,
      SCRIP_DATA_DIR: tmpdir(),
      ...this.#settings,
    };
  }

  /** Runs a command that must succeed, and parses the JSON document that it prints. */
  async json(...line: CommandLine) {
    const { status, out, err } = await this.run(...wordsOf(line), '--json');
    assert.equal(err, '');
    assert.equal(status, 0);
    return JSON.parse(out);
  }

  /** Runs a command that must fail with a message of one line or a JSON document, and no output on stdout. */
  async fails(expected: RegExp, ...args: string[]): Promise<{ status: number; code: string | undefined }> {
    const { status, out, err } = await this.run(...args);
    assert.notEqual(status, 0);
    assert.equal(out, '');
    assert.match(err, /^[^\n]+\n$/);
    if (!args.includes('--json')) {
      assert.match(err, expected);
      assert.match(err, /^scrip: /);
      return { status, code: undefined };
    }
    const { error, ...rest } = JSON.parse(err);
    assert.deepEqual([rest, Object.keys(error)], [{}, ['code', 'message']]);
    assert.match(error.message, expected);
    return { status, code: error.code };
  }

  /** Authenticates a merchant by its API key. */
  async enter({ keyId, secret }: { keyId: string; secret: string }): Promise<Context> {
    return (await authenticate(this.testService.service, `Basic ${btoa(`${keyId}:${secret}`)}`)).context;
  }
}

export async function makeVouchers<Count extends number>(
  context: Context,
  reference: string,
  quantity: Count,
  value = 30,
): Promise<ListOf<Made, Count>> {
  await generate(context, { reference, quantity, value });
  return (await vouchersOf(context, reference)) as ListOf<Made, Count>;
}

export async function vouchersOf(context: Context, reference: string) {
  const vouchers = [];
  for await (const page of readVouchers(context.service, await findBatch(context, reference)))
    vouchers.push(...page);
  return vouchers;
}

export type Made = Awaited<ReturnType<typeof vouchersOf>>[number];
