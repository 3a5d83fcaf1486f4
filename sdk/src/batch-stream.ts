import { BatchParser } from './batch-parser.ts';
import { Deadline } from './deadline.ts';
import { type About, failureOf } from './failure.ts';
import { type AnswerHead, type Connection, judge, parseBody, type Request, send } from './http.ts';
import { Malformed, readBatchHead, readVoucher } from './read.ts';
import type { BatchHead, Voucher } from './types.ts';

type Limits = {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number;
};

/** The response to a download, while it arrives. */
export class BatchStream {
  readonly #about: About;
  readonly #limits: Limits;
  readonly #deadline: Deadline;
  readonly #head: AnswerHead;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #parser = new BatchParser();
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #waiting: Voucher[] = [];
  #batch: BatchHead | undefined;
  #isWhole = false;

  private constructor(
    about: About,
    limits: Limits,
    deadline: Deadline,
    head: AnswerHead,
    body: ReadableStream<Uint8Array>,
  ) {
    this.#about = about;
    this.#limits = limits;
    this.#deadline = deadline;
    this.#head = head;
    this.#reader = body.getReader();
  }

  /**
   * Requests a batch, and reads until its vouchers begin, or to the end if there are none.
   * @throws Failure
   */
  static async open(
    connection: Connection,
    about: About,
    request: Request,
    limits: Limits,
  ): Promise<BatchStream> {
    const deadline = new Deadline(limits.signal);
    try {
      return await send(connection, about, request, { deadline, ...limits }, async (response, head) => {
        // A refusal has no vouchers, and perhaps not even JSON.
        if (!response.ok || !response.body) {
          judge(about, head, parseBody(await response.text()));
          throw new Malformed('a success has no body');
        }
        const stream = new BatchStream(about, limits, deadline, head, response.body);
        await stream.#readHead();
        return stream;
      });
    } catch (error) {
      deadline.close();
      throw error;
    }
  }

  /** The batch, if its fields came before the vouchers, as the service sends them. */
  get batch(): BatchHead | undefined {
    return this.#batch;
  }

  /** Whether the response has a list of vouchers, even an empty one. */
  get hasVouchers(): boolean {
    return this.#parser.hasVouchers;
  }

  /**
   * The vouchers, in pieces as they arrive.
   * @returns the batch, once the response is complete
   * @throws Failure when the response breaks off
   */
  async *pieces(): AsyncGenerator<readonly Voucher[], BatchHead> {
    try {
      for (let more = true; more; ) {
        const piece = this.#waiting;
        this.#waiting = [];
        if (piece.length > 0) yield piece;
        more =
          !this.#isWhole && (await this.#deadline.run(this.#limits.idleTimeoutMs, () => this.#readMore()));
      }
      return this.#batch as BatchHead;
    } catch (error) {
      throw failureOf(this.#about, error, true, this.#limits.signal);
    } finally {
      this.close();
    }
  }

  /** Closes the connection, if it is still open. */
  close(): void {
    this.#reader.cancel().catch(() => {});
    this.#deadline.close();
  }

  async #readHead(): Promise<void> {
    while (!this.#parser.hasVouchers) if (!(await this.#readMore())) return;
    this.#batch = this.#earlyBatch();
  }

  /** Undefined for a batch whose fields come after its vouchers. */
  #earlyBatch(): BatchHead | undefined {
    const { statusCode, data } = this.#parser.head() as {
      readonly statusCode?: unknown;
      readonly data?: unknown;
    };
    try {
      return statusCode === '00' ? readBatchHead(data) : undefined;
    } catch {
      return undefined;
    }
  }

  /** @returns false at the end of a complete response */
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
      throw new Malformed('the response is not UTF-8');
    }
  }
}
