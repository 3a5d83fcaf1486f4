import { once } from 'node:events';
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';

/** The history of an exactly-once run, as a file. The README documents its lines for other checkers. */

const OPERATIONS = ['generate', 'activate', 'redeem', 'update', 'balance', 'lookup'] as const;

/** How the kit breaks the connection of a call, which then has no answer. */
export const CUTS = [
  /** In the middle of the body. */
  'before',
  /** A few milliseconds after the request. */
  'during',
  /** At the first byte of the answer. */
  'after',
] as const;

export type Cut = (typeof CUTS)[number];

/** A call with its answer. Vouchers are numbered within their batch, so no line holds a code or PIN. */
export type Sent = {
  /** Its number, in the order of sending. */
  readonly call: number;
  /** The number of the batch. A call about one batch depends on no other, except for the float. */
  readonly batch: number;
  readonly do: (typeof OPERATIONS)[number];
  readonly variant: 'a' | 'b';
  readonly reference: string | null;
  readonly voucher: number | null;
  readonly pin: 'right' | 'wrong' | null;
  readonly quantity: number | null;
  /** The amount of the request; for a generation the value of each voucher, null for none. */
  readonly amount: number | null;
  readonly cut: Cut | null;
  /** Microseconds since the start, when it was sent and when its answer was complete. */
  readonly from: number;
  readonly to: number | null;
  /** The status code; null without an answer. */
  readonly code: string | null;
  readonly replayed: boolean;
  /** The amount or balance of the answer. */
  readonly shown: number | null;
  /** The transactions shown, each with what it keeps for ever; for a batch, an alias of the rest. */
  readonly ids: readonly string[];
};

export type Head = {
  readonly history: 'exactly-once';
  readonly format: 2;
  readonly kit: string;
  readonly url: string;
  readonly startedAt: string;
  readonly variants: readonly ('a' | 'b')[];
  readonly seed: number;
  readonly minutes: number;
  readonly callers: number;
  /** Whether the rest of the float was spent at the end. */
  readonly drained: boolean;
  /** The float at the beginning, if it is known. */
  readonly float: number | null;
};

export type End = { readonly endedAt: string; readonly calls: number; readonly restarts: number };

export type History = { readonly head: Head; readonly calls: readonly Sent[]; readonly end: End };

/** The file is not the whole history of a run. */
export class NoHistory extends Error {
  override readonly name = 'NoHistory';
}

/** Writes a history. A run that is interrupted leaves a file without its last line. */
export class HistoryWriter {
  readonly #stream: WriteStream;

  constructor(path: string, head: Head) {
    this.#stream = createWriteStream(path);
    this.#write(head);
  }

  add(call: Sent): void {
    this.#write(call);
  }

  /** Waits until what was added is on its way to the disk, if much has piled up. */
  async drained(): Promise<void> {
    if (this.#stream.writableNeedDrain) await once(this.#stream, 'drain');
  }

  async close(end?: End): Promise<void> {
    if (end) this.#write(end);
    this.#stream.end();
    await finished(this.#stream);
  }

  #write(line: object): void {
    this.#stream.write(`${JSON.stringify(line)}\n`);
  }
}

/**
 * Reads a history.
 * @throws NoHistory
 */
export async function readHistory(path: string): Promise<History> {
  let head: Head | undefined;
  let end: End | undefined;
  let number = 0;
  const calls: Sent[] = [];
  for await (const text of createInterface({ input: createReadStream(path) })) {
    number++;
    const line = parse(text);
    if (end || !line) throw new NoHistory(`line ${number} is not one of a history`);
    if (!head) head = asHead(line);
    else if ('endedAt' in line) end = asEnd(line);
    else calls.push(asCall(line, number));
  }
  if (!head) throw new NoHistory('the file is empty');
  if (!end) throw new NoHistory('its last line is missing: the run was interrupted, or the file is cut');
  if (end.calls !== calls.length || new Set(calls.map(({ call }) => call)).size !== calls.length)
    throw new NoHistory(`it has ${calls.length} calls, and was written with ${end.calls}`);
  return { head, calls, end };
}

type Line = Readonly<Record<string, unknown>>;

function parse(text: string): Line | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === 'object' && line !== null && !Array.isArray(line) ? (line as Line) : undefined;
  } catch {
    return undefined;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= 400;
const isNumber = (value: unknown): value is number => typeof value === 'number';
const orNull = (test: (value: unknown) => boolean) => (value: unknown) => value === null || test(value);
const oneOf = (values: readonly unknown[]) => (value: unknown) => values.includes(value);
const listOf = (test: (value: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) && value.every(test);

type Tests<T> = { readonly [K in keyof T]: (value: unknown) => boolean };

const HEAD: Tests<Head> = {
  history: oneOf(['exactly-once']),
  format: oneOf([2]),
  kit: isText,
  url: isText,
  startedAt: isText,
  variants: listOf(oneOf(['a', 'b'])),
  seed: isCount,
  minutes: isNumber,
  callers: isCount,
  drained: oneOf([true, false]),
  float: orNull(isNumber),
};

const END: Tests<End> = { endedAt: isText, calls: isCount, restarts: isCount };

const CALL: Tests<Sent> = {
  call: isCount,
  batch: isCount,
  do: oneOf(OPERATIONS),
  variant: oneOf(['a', 'b']),
  reference: orNull(isText),
  voucher: orNull(isCount),
  pin: oneOf(['right', 'wrong', null]),
  quantity: orNull(isCount),
  amount: orNull(isNumber),
  cut: oneOf([...CUTS, null]),
  from: isCount,
  to: orNull(isCount),
  code: orNull(isText),
  replayed: oneOf([true, false]),
  shown: orNull(isNumber),
  ids: listOf(isText),
};

/** Whether a line has these fields and no others. */
function hasForm<T>(line: Line, tests: Tests<T>): boolean {
  const names = Object.keys(tests) as (string & keyof T)[];
  return Object.keys(line).length === names.length && names.every((name) => tests[name](line[name]));
}

function asHead(line: Line): Head {
  if (!hasForm<Head>(line, HEAD)) throw new NoHistory('its first line is not that of a history');
  return line as Head;
}

function asEnd(line: Line): End {
  if (!hasForm<End>(line, END)) throw new NoHistory('its last line is not that of a history');
  return line as End;
}

function asCall(line: Line, number: number): Sent {
  const isWhole =
    hasForm<Sent>(line, CALL) &&
    (line['to'] === null) === (line['code'] === null) &&
    (line['to'] === null || (line['to'] as number) >= (line['from'] as number));
  if (!isWhole) throw new NoHistory(`line ${number} is not a call`);
  return line as Sent;
}
