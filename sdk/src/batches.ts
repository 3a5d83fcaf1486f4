import { BatchStream } from './batch-stream.ts';
import type { Caller } from './call.ts';
import { checkReference } from './check.ts';
import { pause } from './deadline.ts';
import type { Operation } from './errors.ts';
import { type About, clientError, Failure, mismatch } from './failure.ts';
import type { Batch, BatchHead, CallOptions, DownloadOptions, Voucher, WaitOptions } from './types.ts';

const IDLE_TIMEOUT_MS = 30_000;
const WAIT_MS = 60 * 60_000;
const POLL_MIN_MS = 500;
const POLL_MAX_MS = 10_000;

function open(
  { connection }: Caller,
  about: About,
  {
    signal,
    timeoutMs,
    idleTimeoutMs,
  }: { signal: AbortSignal | undefined; timeoutMs: number; idleTimeoutMs: number },
): Promise<BatchStream> {
  const path = `/vouchers/${encodeURIComponent(about.reference as string)}`;
  return BatchStream.open(connection, about, { method: 'GET', path }, { signal, timeoutMs, idleTimeoutMs });
}

function aboutBatch(
  caller: Caller,
  operation: Operation,
  reference: string,
  options: CallOptions & DownloadOptions,
): About {
  const about = caller.about(
    operation,
    caller.check(operation, undefined, () => checkReference(reference)),
  );
  caller.checkTimes(about, options);
  return about;
}

/** Reads a stream to its end. */
async function drain(stream: BatchStream, keep: (vouchers: readonly Voucher[]) => void): Promise<BatchHead> {
  const pieces = stream.pieces();
  for (let piece = await pieces.next(); ; piece = await pieces.next()) {
    if (piece.done) return piece.value;
    keep(piece.value);
  }
}

/** A batch with its vouchers, in memory. */
export async function downloadBatch(caller: Caller, reference: string, options: CallOptions): Promise<Batch> {
  const about = aboutBatch(caller, 'download', reference, options);
  const { signal } = options;
  return caller.retry(about, options, async (timeoutMs) => {
    const stream = await open(caller, about, { signal, timeoutMs, idleTimeoutMs: IDLE_TIMEOUT_MS });
    const vouchers: Voucher[] = [];
    const batch = await drain(stream, (piece) => {
      for (const voucher of piece) vouchers.push(voucher);
    });
    if (batch.reference !== reference) throw mismatch(about, 'it is about another reference');
    if (batch.status !== 'COMPLETED') return { ...batch, status: batch.status };
    if (!stream.hasVouchers) throw mismatch(about, 'a completed batch has no vouchers');
    return { ...batch, status: batch.status, vouchers };
  });
}

/** The vouchers of a completed batch, as a stream. */
export async function* streamVouchers(
  caller: Caller,
  reference: string,
  options: DownloadOptions,
): AsyncGenerator<Voucher, BatchHead, undefined> {
  const about = aboutBatch(caller, 'downloadVouchers', reference, options);
  const { signal, idleTimeoutMs = IDLE_TIMEOUT_MS } = options;
  const stream = await caller.retry(about, { signal }, (timeoutMs) =>
    open(caller, about, { signal, timeoutMs, idleTimeoutMs }),
  );
  try {
    if (stream.batch) requireCompleted(about, stream.batch);
    const pieces = stream.pieces();
    for (let piece = await pieces.next(); ; piece = await pieces.next()) {
      if (piece.done) {
        requireCompleted(about, piece.value);
        if (!stream.hasVouchers) throw mismatch(about, 'a completed batch has no vouchers');
        return piece.value;
      }
      yield* piece.value;
    }
  } catch (error) {
    throw error instanceof Failure ? error.error : error;
  } finally {
    stream.close();
  }
}

function requireCompleted(about: About, { status }: BatchHead): void {
  if (status === 'CANCELED') throw clientError(about, 'batchCanceled', undefined, { isRetryable: false });
  if (status === 'PROCESSING') throw clientError(about, 'batchNotCompleted');
}

/** Polls a batch, at growing intervals, until it is completed. */
export async function waitForBatch(
  caller: Caller,
  reference: string,
  options: WaitOptions,
): Promise<BatchHead<'COMPLETED'>> {
  const about = aboutBatch(caller, 'waitForBatch', reference, options);
  const { signal, deadlineMs = WAIT_MS, onProgress } = options;
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  for (let looks = 1; ; looks++) {
    const left = { signal, deadlineMs: Math.min(caller.rules.deadlineMs, deadlineMs - elapsedMs()) };
    const batch = await caller.retry(about, left, (timeoutMs) => look(caller, about, signal, timeoutMs));
    if (batch.status === 'COMPLETED') return { ...batch, status: batch.status };
    if (batch.status === 'CANCELED') requireCompleted(about, batch);
    onProgress?.({ batch, looks, elapsedMs: elapsedMs() });
    const delayMs = Math.min(POLL_MAX_MS, POLL_MIN_MS * 1.5 ** (looks - 1)) * (0.75 + Math.random() / 2);
    if (elapsedMs() + delayMs >= deadlineMs) throw clientError(about, 'timedOut');
    if (!(await pause(delayMs, signal))) {
      throw clientError(about, 'aborted', undefined, { cause: signal?.reason });
    }
  }
}

/** The head of a batch. The connection is closed before its vouchers are sent. */
async function look(
  caller: Caller,
  about: About,
  signal: AbortSignal | undefined,
  timeoutMs: number,
): Promise<BatchHead> {
  const stream = await open(caller, about, { signal, timeoutMs, idleTimeoutMs: IDLE_TIMEOUT_MS });
  try {
    return stream.batch ?? (await drain(stream, () => {}));
  } finally {
    stream.close();
  }
}
