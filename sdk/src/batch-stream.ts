import { type AnswerHead, judge, parseBody } from './answer.ts';
import { ask, type Connection, type Request, watchedFailure } from './attempt.ts';
import { BatchParser } from './batch-parser.ts';
import type { About } from './failure.ts';
import { Malformed, readBatchHead, readVoucher } from './read.ts';
import type { BatchHead, Voucher } from './types.ts';
import { Watch } from './watch.ts';

type Limits = { readonly signal: AbortSignal | undefined; readonly timeoutMs: number; readonly idleTimeoutMs: number };

/** The answer to a download while it comes. */
export class BatchStream {
  readonly #about: About;
  readonly #watch: Watch;
  readonly #head: AnswerHead;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #idleTimeoutMs: number;
  readonly #parser = new BatchParser();
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #waiting: Voucher[] = [];
  #batch: BatchHead | undefined;
  #isWhole = false;

  private constructor(
    about: About,
    watch: Watch,
    head: AnswerHead,
    reader: ReadableStreamDefaultReader<Uint8Array>,
    idleTimeoutMs: number,
  ) {
    this.#about = about;
    this.#watch = watch;
    this.#head = head;
    this.#reader = reader;
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  /**
   * Asks for a batch, and reads until its vouchers begin, or to the end where there are none.
   * @throws Failure
   */
  static async open(
    connection: Connection,
    about: About,
    request: Request,
    { signal, timeoutMs, idleTimeoutMs }: Limits,
  ): Promise<BatchStream> {
    const watch = new Watch(signal);
    try {
      return await ask(connection, about, request, watch, timeoutMs, async (response, head) => {
        // Small, and perhaps not even JSON: what is no success has no vouchers.
        if (!response.ok || !response.body) {
          judge(about, head, parseBody(await response.text()));
          throw new Malformed('a success has no body');
        }
        const stream = new BatchStream(about, watch, head, response.body.getReader(), idleTimeoutMs);
        await stream.#readHead();
        return stream;
      });
    } catch (error) {
      watch.close();
      throw error;
    }
  }

  /** The batch, as far as it was told before the vouchers: the service tells all of it there. */
  get batch(): BatchHead | undefined {
    return this.#batch;
  }

  /** Whether the answer has a list of vouchers, be it an empty one. */
  get hasVouchers(): boolean {
    return this.#parser.hasVouchers;
  }

  /**
   * The vouchers, in pieces as they come.
   * @returns the batch, when all of it has come
   * @throws Failure when the answer breaks off
   */
  async *pieces(): AsyncGenerator<readonly Voucher[], BatchHead> {
    try {
      for (let more = true; more; ) {
        const piece = this.#waiting;
        this.#waiting = [];
        if (piece.length > 0) yield piece;
        more = !this.#isWhole && (await this.#watch.over(this.#idleTimeoutMs, () => this.#readMore()));
      }
      return this.#batch as BatchHead;
    } catch (error) {
      throw watchedFailure(this.#about, error, true);
    } finally {
      this.close();
    }
  }

  /** Ends the connection where it is still open. */
  close(): void {
    this.#reader.cancel().catch(() => {});
    this.#watch.close();
  }

  async #readHead(): Promise<void> {
    while (!this.#parser.hasVouchers) if (!(await this.#readMore())) return;
    this.#batch = this.#earlyBatch();
  }

  /** A batch whose fields stand behind its vouchers is told at the end. */
  #earlyBatch(): BatchHead | undefined {
    const { statusCode, data } = this.#parser.head() as { readonly statusCode?: unknown; readonly data?: unknown };
    try {
      return statusCode === '00' ? readBatchHead(data) : undefined;
    } catch {
      return undefined;
    }
  }

  /** @returns false at the end, which is only one where the answer is complete */
  async #readMore(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    const text = this.#decode(value, done);
    for (const item of this.#parser.push(text)) this.#waiting.push(readVoucher(item));
    if (!done) return true;
    const { data } = judge(this.#about, this.#head, this.#parser.finish());
    this.#batch = readBatchHead(data);
    this.#isWhole = true;
    return false;
  }

  #decode(value: Uint8Array | undefined, done: boolean): string {
    try {
      return this.#decoder.decode(value, { stream: !done });
    } catch {
      throw new Malformed('the answer is not UTF-8');
    }
  }
}
