import { openSync, readSync } from 'node:fs';

/**
 * The requests of the load: a list for each operation, as the bytes of the wire, so that the load
 * generator only sends them.
 */

export type Voucher = { readonly code: string; readonly pin: string; readonly serial: bigint };

/** The stock of a run. Everything that an operation uses up is taken from here only once. */
export type Stock = {
  readonly authorization: string;
  /** Vouchers with a balance, in another order than that of the table. */
  readonly vouchers: readonly Voucher[];
  /**
   * The same, with only an activation and a redemption in their history, however long the benchmark runs.
   */
  readonly quiet: readonly Voucher[];
  /** Inactive vouchers without a value. Each can be activated once. */
  readonly inactive: Iterator<Voucher>;
  /** References of redemptions that are not updated. */
  readonly redeemed: readonly string[];
  /** References of redemptions that can be updated once. */
  readonly updatable: Iterator<string>;
};

/** The header with which a key calls. */
export const basic = ({ keyId, secret }: { readonly keyId: string; readonly secret: string }) =>
  `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`;

type Maker = (stock: Stock, run: string, index: number) => string;

const A = '/merchant-client/v2';

function raw(stock: Stock, method: 'GET' | 'POST', path: string, body?: string): string {
  const head = `${method} ${A}${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${stock.authorization}\r\n`;
  if (body === undefined) return `${head}\r\n`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function any<T>(all: readonly T[], index: number): T {
  return all[index % all.length] as T;
}

function take<T>(from: Iterator<T>): T {
  const { value, done } = from.next();
  if (done) throw new Error('the stock of the benchmark ran out: it is made too small for this machine');
  return value;
}

const redeem: Maker = (stock, run, index) => {
  const { code, pin } = any(stock.vouchers, index);
  // The least amount, so that no voucher is empty within a run.
  return raw(
    stock,
    'POST',
    '/redeem',
    `{"code":"${code}","pin":"${pin}","amount":0.01,"reference":"${run}-${index}"}`,
  );
};

const balance: Maker = (stock, _run, index) => {
  const { code, pin } = any(stock.quiet, index);
  return raw(stock, 'POST', '/balance', `{"code":"${code}","pin":"${pin}"}`);
};

const lookup: Maker = (stock, _run, index) =>
  raw(stock, 'GET', `/transactions/${any(stock.redeemed, index)}`);

const activate: Maker = (stock, run, index) => {
  const { code, pin } = take(stock.inactive);
  return raw(stock, 'POST', '/activate', `{"code":"${code}","pin":"${pin}","reference":"${run}-${index}"}`);
};

const update: Maker = (stock) =>
  raw(stock, 'POST', '/redemptions/update', `{"reference":"${take(stock.updatable)}","amountUsed":0.01}`);

const list: Maker = (stock) => raw(stock, 'GET', '/transactions');

/** A till's day: 70 % balance and redeem, 20 % look-ups, 10 % the rest. */
const MIX: readonly Maker[] = [
  ...Array.from({ length: 7 }, () => [redeem, lookup, balance, redeem, balance]).flat(),
  ...[balance, redeem, lookup, activate, update],
  ...[balance, redeem, balance, lookup, lookup],
  ...[redeem, balance, list, activate, update],
];

const till: Maker = (stock, run, index) => any(MIX, index)(stock, run, index);

/**
 * The operations, each with the share of its requests that uses the stock up, which decides the size of
 * the stock.
 */
export const OPERATIONS = {
  redeem: { make: redeem, inactive: 0, updatable: 0 },
  balance: { make: balance, inactive: 0, updatable: 0 },
  lookup: { make: lookup, inactive: 0, updatable: 0 },
  activate: { make: activate, inactive: 1, updatable: 0 },
  update: { make: update, inactive: 0, updatable: 1 },
  list: { make: list, inactive: 0, updatable: 0 },
  till: { make: till, inactive: 0.04, updatable: 0.04 },
} as const satisfies Record<string, { make: Maker; inactive: number; updatable: number }>;

export type OperationName = keyof typeof OPERATIONS;

/** The separator of requests in a file. No request holds it. */
export const SEPARATOR = '\0';

/** How many requests are made at a time: those of a minute are too long for one string. */
const PIECE = 10_000;

/** Makes the text of the file of one run, in pieces. `run` makes their references unique. */
export function* requestsOf(
  operation: OperationName,
  stock: Stock,
  run: string,
  count: number,
): Generator<string> {
  const { make } = OPERATIONS[operation];
  for (let from = 0; from < count; from += PIECE) {
    const length = Math.min(PIECE, count - from);
    const made = Array.from({ length }, (_, index) => make(stock, run, from + index)).join(SEPARATOR);
    yield from === 0 ? made : SEPARATOR + made;
  }
}

const CHUNK_BYTES = 256 * 1024;

/** Reads a file of requests in order, and again from the beginning when all were read. */
export class RequestReader {
  readonly #file: number;
  readonly #chunk = Buffer.alloc(CHUNK_BYTES);
  #position = 0;
  #requests: string[] = [];
  #next = 0;
  /** The beginning of a request whose end was not read yet. */
  #rest = '';

  constructor(path: string) {
    this.#file = openSync(path, 'r');
  }

  next(): string {
    while (this.#next === this.#requests.length) this.#read();
    return this.#requests[this.#next++] as string;
  }

  #read(): void {
    const bytes = readSync(this.#file, this.#chunk, { position: this.#position });
    this.#position += bytes;
    this.#next = 0;
    if (bytes === 0) {
      // The last request has no separator.
      if (this.#position === 0) throw new Error('the file has no requests');
      this.#requests = [this.#rest];
      this.#rest = '';
      this.#position = 0;
      return;
    }
    this.#requests = (this.#rest + this.#chunk.toString('latin1', 0, bytes)).split(SEPARATOR);
    this.#rest = this.#requests.pop() ?? '';
  }
}
