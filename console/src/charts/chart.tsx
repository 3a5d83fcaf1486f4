import './chart.css';
import { useElementSize } from '@mantine/hooks';
import { useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { useFormat } from '../ui/format.ts';
import { isDay, isMonth } from '../ui/format-of.ts';
import { useWords } from '../ui/words.ts';
import type { Point } from './read.ts';

export type ChartKind = 'area' | 'bars' | 'lines' | 'ranks';
export type ChartProps = {
  readonly kind: ChartKind;
  readonly points: readonly Point[];
  /** The column of the axis, and the columns that are drawn. */
  readonly x: string;
  readonly series: readonly string[];
  readonly currency?: string;
  readonly unit?: 'money' | 'percent' | 'days' | 'count';
};

const HEIGHT = 216;
const [RIGHT, TOP, BOTTOM] = [8, 8, 26];
/** About the width of a character on an axis. */
const LETTER = 7.5;
/** The space beside the labels of the left axis: 8 to the chart, the rest to the edge. */
const BESIDE = 14;
const BAR_MAX = 30;

/** The format of values, and of labels on the axis. */
function useLabels({ x, currency, unit = 'money' }: Pick<ChartProps, 'x' | 'currency' | 'unit'>) {
  const format = useFormat();
  const { label, word } = useWords();
  const { codes } = useTexts();
  const place = (value: unknown): string => {
    const text = String(value);
    if (isDay(text)) return format.day(text);
    if (isMonth(text)) return format.month(text);
    return x === 'code' ? (codes[text] ?? text) : word(text);
  };
  const mark = (value: unknown) => (isDay(value) ? format.dayShort(value) : place(value));
  const { lasts } = useTexts().chart;
  const value = (amount: number) => {
    // The table below the chart opens them.
    if (unit === 'money' && currency) return `${format.money(amount, currency)}`;
    if (unit === 'percent') return format.percent(String(amount));
    return unit === 'days' ? lasts(amount) : format.number(amount);
  };
  const tick = (amount: number) =>
    unit === 'percent' ? format.percent(String(amount)) : format.short(amount);
  const name = (series: string) => (isMonth(series) ? format.month(series) : label(series));
  return { place, mark, value, tick, name };
}

/** Draws points as an area, lines, or bars; `ranks` is a list of bars from left to right. */
export function Chart(props: ChartProps) {
  return props.kind === 'ranks' ? <Ranks {...props} /> : <Plot {...props} />;
}

function Plot(props: ChartProps) {
  const { kind, points, x, series } = props;
  const labels = useLabels(props);
  const { ref, width } = useElementSize();
  const [at, setAt] = useState<number>();
  const values = points.flatMap((point) => series.map((name) => readValue(point, name) ?? 0));
  const ticks = ticksOf(values);
  const [least, most] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const left = LETTER * Math.max(...ticks.map((tick) => labels.tick(tick).length)) + BESIDE;
  const inner = Math.max(1, width - left - RIGHT);
  const slot = inner / points.length;
  const isBars = kind === 'bars';
  const toX = (index: number) =>
    isBars || points.length === 1
      ? left + slot * (index + 0.5)
      : left + (inner * index) / (points.length - 1);
  const toY = (value: number) => TOP + ((most - value) / (most - least || 1)) * (HEIGHT - TOP - BOTTOM);
  const names = points.map((point) => labels.place(point[x]));
  const marks = points.map((point) => labels.mark(point[x]));
  const stride = strideOf(marks, inner);
  const shown = at === undefined ? undefined : points[at];
  const follow = (clientX: number, start: number) => {
    const place = (clientX - start - left) / (isBars ? slot : inner / Math.max(1, points.length - 1));
    setAt(Math.max(0, Math.min(points.length - 1, isBars ? Math.floor(place) : Math.round(place))));
  };
  return (
    <figure className="chart" ref={ref}>
      <svg
        width={width}
        height={HEIGHT}
        role="img"
        aria-label={series.map(labels.name).join(', ')}
        onMouseMove={(event) => follow(event.clientX, event.currentTarget.getBoundingClientRect().left)}
        onMouseLeave={() => setAt(undefined)}
      >
        <Grid ticks={ticks} left={left} width={width} toY={toY} label={labels.tick} />
        {marks.map((name, index) =>
          index % stride === 0 ? (
            <text
              key={names[index]}
              x={Math.min(toX(index), width - (LETTER * name.length) / 2)}
              y={HEIGHT - 6}
              textAnchor="middle"
            >
              {name}
            </text>
          ) : null,
        )}
        {at !== undefined && !isBars && (
          <line x1={toX(at)} x2={toX(at)} y1={TOP} y2={HEIGHT - BOTTOM} className="cursor" />
        )}
        {series.map((name, index) => {
          const own = points.flatMap((point, place) => {
            const value = readValue(point, name);
            return value === undefined ? [] : [{ x: toX(place), y: toY(value), value }];
          });
          return isBars ? (
            <Bars key={name} own={own} index={index} of={series.length} slot={slot} base={toY(0)} />
          ) : (
            <Line key={name} own={own} index={index} base={kind === 'area' ? toY(0) : undefined} />
          );
        })}
      </svg>
      {shown && at !== undefined && (
        <div className="tip" style={{ [toX(at) > width / 2 ? 'right' : 'left']: tipAt(toX(at), width) }}>
          <b>{names[at]}</b>
          <Values of={shown} series={series} labels={labels} />
        </div>
      )}
      {series.length > 1 && (
        <figcaption style={{ paddingLeft: left }}>
          {series.map((name, index) => (
            <span key={name} data-series={index % 8}>
              <i /> {labels.name(name)}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function readValue(point: Point, name: string): number | undefined {
  const value = point[name];
  return value === undefined ? undefined : Number(value);
}

type GridProps = {
  ticks: readonly number[];
  left: number;
  width: number;
  toY(value: number): number;
  label(value: number): string;
};

function Grid({ ticks, left, width, toY, label }: GridProps) {
  return ticks.map((tick) => (
    <g key={tick}>
      <line x1={left} x2={width - RIGHT} y1={toY(tick)} y2={toY(tick)} className="grid" />
      <text x={left - 8} y={toY(tick) + 4} textAnchor="end">
        {label(tick)}
      </text>
    </g>
  ));
}

type ValuesProps = { of: Point; series: readonly string[]; labels: ReturnType<typeof useLabels> };

function Values({ of, series, labels }: ValuesProps) {
  return series.map((name, index) => {
    const value = readValue(of, name);
    return value === undefined ? null : (
      <div key={name} data-series={index % 8}>
        <i /> {labels.name(name)} <span>{labels.value(value)}</span>
      </div>
    );
  });
}

const TIP_GAP = 14;
const tipAt = (x: number, width: number) => (x > width / 2 ? width - x + TIP_GAP : x + TIP_GAP);

type Spot = { readonly x: number; readonly y: number; readonly value: number };

function Line({ own, index, base }: { own: readonly Spot[]; index: number; base: number | undefined }) {
  const path = own.map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
  const [first, last] = [own[0], own.at(-1)];
  if (!first || !last) return null;
  return (
    <g data-series={index % 8}>
      {base !== undefined && <path d={`${path}L${last.x} ${base}L${first.x} ${base}Z`} className="area" />}
      <path d={path} className="stroke" />
      {(base === undefined || own.length === 1) &&
        own.map(({ x, y }) => <circle key={x} cx={x} cy={y} r={3} className="fill" />)}
    </g>
  );
}

type BarsProps = { own: readonly Spot[]; index: number; of: number; slot: number; base: number };

function Bars({ own, index, of, slot, base }: BarsProps) {
  const wide = Math.min(BAR_MAX, (slot * 0.7) / of);
  return (
    <g data-series={index % 8}>
      {own.map(({ x, y }) => (
        <rect
          key={x}
          x={x + (index - of / 2) * wide + 1}
          y={Math.min(y, base)}
          width={Math.max(1, wide - 2)}
          height={Math.abs(base - y)}
          rx={2}
          className="fill"
        />
      ))}
    </g>
  );
}

/** The rest is in the table. */
const RANKS_MAX = 12;

function Ranks(props: ChartProps) {
  const { points, x, series } = props;
  const labels = useLabels(props);
  const name = series[0] ?? '';
  const most = Math.max(1, ...points.slice(0, RANKS_MAX).map((point) => Number(point[name])));
  return (
    <ul className="ranks">
      {points.slice(0, RANKS_MAX).map((point) => (
        <li key={`${point[x]} ${point['currency']}`} data-series={0}>
          <span>
            <bdi>{labels.place(point[x])}</bdi>{' '}
            {point['currency'] && <small className="quiet">{point['currency']}</small>}
          </span>
          <span>
            <i style={{ width: `${(100 * Number(point[name])) / most}%` }} />
          </span>
          <b>{labels.value(Number(point[name]))}</b>
        </li>
      ))}
    </ul>
  );
}

const TICKS = 4;
const STEPS = [1, 2, 2.5, 5, 10];

/** Round numbers from zero or below to above the largest value. */
function ticksOf(values: readonly number[]): number[] {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const rough = (most - least || 1) / TICKS;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = magnitude * (STEPS.find((each) => each * magnitude >= rough) ?? 10);
  const [first, last] = [Math.floor(least / step), Math.ceil(most / step)];
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

/** Returns n such that every n-th label fits. */
function strideOf(labels: readonly string[], width: number): number {
  const longest = Math.max(1, ...labels.map(({ length }) => length));
  const most = Math.max(1, Math.floor(width / (longest * 6.5 + 16)));
  return Math.max(1, Math.ceil(labels.length / most));
}
