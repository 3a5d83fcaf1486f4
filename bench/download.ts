import type { Batch } from '../src/batches/batch.ts';
import type { BatchLoad } from './batch-load.ts';
import { copyOut } from './copy.ts';
import { type BatchesResult, type BatchTurn, figuresOf, middleOf, tellTurn } from './generate.ts';
import { playBatches } from './play.ts';
import type { Serve, Stage } from './stage.ts';
import { besideBare } from './yardstick.ts';

/**
 * Downloads of batches, small ones and a large one. The yardsticks are COPY of the same rows out of the
 * table, which is the work of the database, and bare Fastify that sends as many bytes from memory. The
 * difference is the opening of seals and the writing of JSON.
 */

const SMALL = { quantity: 50, batches: 200, clients: 8, copies: 20 };
/** Downloads follow each other for this time: two or three. */
const LARGE = { quantity: 100_000, clients: 1, copies: 2, seconds: 2 };
const VALUE = 0.01;
const WARM_UP_SECONDS = 1;
/** The figure of bare Fastify. */
const YARDSTICK_SECONDS = 1;

type Subject = {
  readonly quantity: number;
  readonly clients: number;
  readonly batches: readonly Batch[];
  readonly seconds: number;
  /** How often COPY reads them all. */
  readonly copies: number;
};

export async function measureDownload(stage: Stage, seconds: number, turns: number): Promise<BatchesResult> {
  const serve = await stage.serve();
  const { quantity, batches, clients, copies } = SMALL;
  const few = await orderAll(stage, batches, quantity, clients);
  const many = [await stage.order(LARGE.quantity, VALUE)];
  const subjects = {
    small: { quantity, clients, copies, batches: few, seconds },
    large: { ...LARGE, batches: many },
  };
  for (const { batches: all } of [subjects.small, subjects.large]) await check(stage, serve, all[0] as Batch);
  await play(stage, serve.url, { ...subjects.small, seconds: WARM_UP_SECONDS });
  const small: BatchTurn[] = [];
  const large: BatchTurn[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const [one, other] = [
      await download(stage, serve, subjects.small),
      await download(stage, serve, subjects.large),
    ];
    small.push(one);
    large.push(other);
    tellTurn('download', turn, [one, other]);
  }
  await serve.stop();
  return middleOf(small, large);
}

/** Makes a number of batches, a few at a time. */
async function orderAll(stage: Stage, count: number, quantity: number, atOnce: number): Promise<Batch[]> {
  const ordered: Batch[] = [];
  let left = count;
  const orderSome = async () => {
    while (left-- > 0) ordered.push(await stage.order(quantity, VALUE));
  };
  await Promise.all(Array.from({ length: atOnce }, orderSome));
  return ordered;
}

const pathOf = ({ reference }: Batch) => `/api/v2/vouchers/${reference}`;

/** A download counts if it has all vouchers of its batch. */
async function check({ authorization }: Stage, { url }: Serve, batch: Batch): Promise<void> {
  const response = await fetch(url + pathOf(batch), { headers: { authorization } });
  const { data } = (await response.json()) as { data: { vouchers: unknown[] } };
  if (data.vouchers.length !== batch.quantity)
    throw new Error(`a download has ${data.vouchers.length} vouchers`);
}

function play(
  { authorization }: Stage,
  url: string,
  { clients, batches, seconds }: Subject,
): Promise<BatchLoad> {
  return playBatches({ url, authorization, clients, seconds, what: { paths: batches.map(pathOf) } });
}

async function download(stage: Stage, serve: Serve, subject: Subject): Promise<BatchTurn> {
  const { quantity, clients, batches, copies } = subject;
  const ids = Array.from({ length: copies }, () => batches.map(({ id }) => id)).flat();
  const copy = await copyOut(stage.embedded.ownerUrl, quantity, ids, clients);
  const [batch] = batches as readonly [Batch];
  const { bytes } = await play(stage, serve.url, { ...subject, batches: [batch], clients: 1, seconds: 0 });
  const what = { paths: [`/bytes/${Math.round(bytes)}`] };
  const { authorization } = stage;
  const bare = await besideBare(async (url) => {
    await playBatches({ url, authorization, clients, seconds: 0, what });
    return (
      (await playBatches({ url, authorization, clients, seconds: YARDSTICK_SECONDS, what })).perSecond *
      quantity
    );
  });
  const yardsticks = { copy, bare };
  const figures = await figuresOf(stage, serve, subject, yardsticks, () => play(stage, serve.url, subject));
  return { figures, yardsticks };
}
