import { barChart } from './chart.ts';
import { TIMES, table, whole } from './figures.ts';
import type { BatchesResult, BatchFigures } from './generate.ts';

/** The parts of the report about batches. Their unit is vouchers. */

const NONE = '–';

/** A batch that takes a second is made three times a run, too few for high percentiles. */
function timesOf({ clients }: BatchFigures, times: BatchFigures['whole']): string[] {
  const digits = times.p50Ms < 100 ? 1 : 0;
  if (clients === 1) return [times.p50Ms.toFixed(digits), NONE, NONE];
  return [times.p50Ms.toFixed(digits), times.p99Ms.toFixed(1), times.p999Ms.toFixed(1)];
}

function costOf(each: BatchFigures): string[] {
  return [
    `${each.serviceCpuUs.toFixed(1)} + ${each.databaseCpuUs.toFixed(1)}`,
    `${whole(each.serviceMb)} + ${whole(each.databaseMb)}`,
  ];
}

function nameOf({ quantity, clients }: BatchFigures): string {
  return clients === 1 ? `${whole(quantity)}, one at a time` : `${whole(quantity)}, ${clients} at a time`;
}

const COST = ['CPU µs', 'memory MB'];

/** Heading and text. */
export function tellGenerate({ turns, yardsticks, small, large }: BatchesResult): [string, string] {
  const rows = [small, large].map((each) => [
    nameOf(each),
    whole(each.perSecond),
    `**${each.ratios.copy.toFixed(2)}**`,
    ...timesOf(each, each.whole),
    ...costOf(each),
  ]);
  const head = ['batches of', 'vouchers a second', '× COPY', ...TIMES, ...COST];
  return [
    'Generation',
    `Medians of ${turns} turns. COPY of the same rows made ${whole(yardsticks.small.copy)} and ${whole(yardsticks.large.copy)} vouchers a second. The times are those of a batch, from the order
until its merchant has all vouchers (small ones: over HTTP, asking every 10 ms) or it is complete.
CPU is for each voucher, service + database.

${table(head, rows)}

![Vouchers a second](performance/batches.svg)`,
  ];
}

/** Heading and text. */
export function tellDownload({ turns, yardsticks, small, large }: BatchesResult): [string, string] {
  const rows = [small, large].flatMap((each) => [
    [
      nameOf(each),
      whole(each.perSecond),
      `**${each.ratios.copy.toFixed(2)}**`,
      (each.ratios.bare ?? 0).toFixed(2),
      'whole',
      ...timesOf(each, each.whole),
      ...costOf(each),
    ],
    ['', '', '', '', 'first byte', ...timesOf(each, each.first), '', ''],
  ]);
  const head = ['batches of', 'vouchers a second', '× COPY', '× bare', 'until', ...TIMES, ...COST];
  const { small: few, large: many } = yardsticks;
  return [
    'Download',
    `Medians of ${turns} turns. COPY out of the table reached ${whole(few.copy)} and ${whole(many.copy)} vouchers a second, bare Fastify the bytes of ${whole(few.bare ?? 0)} and ${whole(many.bare ?? 0)}. CPU is for each
voucher, service + database.

${table(head, rows)}`,
  ];
}

/**
 * A bar for each kind of batch, and in grey COPY into the tables. COPY out of them would leave no room
 * for the other bars.
 */
export function drawBatches(
  generate: BatchesResult | undefined,
  download: BatchesResult | undefined,
): string {
  const bars = [
    ...(generate ? barsOf('generate', generate, 'COPY') : []),
    ...(download ? barsOf('download', download) : []),
  ];
  return barChart('Vouchers a second (× COPY)', bars);
}

function barsOf(name: string, { yardsticks, small, large }: BatchesResult, copy?: string) {
  return [
    { each: small, yardstick: yardsticks.small },
    { each: large, yardstick: yardsticks.large },
  ].flatMap(({ each, yardstick }) => [
    {
      label: `${name}, ${whole(each.quantity)}`,
      value: each.perSecond,
      note: `${whole(each.perSecond)}  (${each.ratios.copy.toFixed(2)} ×)`,
    },
    ...(copy === undefined
      ? []
      : [
          {
            label: `${copy}, ${whole(each.quantity)}`,
            value: yardstick.copy,
            note: whole(yardstick.copy),
            muted: true,
          },
        ]),
  ]);
}
