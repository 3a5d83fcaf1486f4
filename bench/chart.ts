/**
 * Charts as SVG: horizontal bars, and curves of distributions in panels. They are light, and readable in
 * print and without color.
 */

type Bar = {
  readonly label: string;
  readonly value: number;
  readonly note: string;
  readonly muted?: boolean;
};

const WIDTH = 720;
const LABEL = 190;
const NOTE = 150;
const ROW = 26;
const TOP = 44;
const COLORS = { bar: '#2f6f8f', muted: '#c3ccd3' };

const quote = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Bars below each other, each with a label on the left and a note on the right. */
export function barChart(title: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const height = TOP + bars.length * ROW + 12;
  const room = WIDTH - LABEL - NOTE;
  const rows = bars.map(({ label, value, note, muted }, index) => {
    const y = TOP + index * ROW;
    const width = Math.max(1, Math.round((value / most) * room));
    return [
      `<text x="${LABEL - 8}" y="${y + 13}" text-anchor="end">${quote(label)}</text>`,
      `<rect x="${LABEL}" y="${y}" width="${width}" height="${ROW - 8}" rx="2" fill="${muted ? COLORS.muted : COLORS.bar}"/>`,
      `<text x="${LABEL + width + 6}" y="${y + 13}">${quote(note)}</text>`,
    ].join('\n');
  });
  return picture(title, height, 13, rows);
}

/** A picture with a title. */
function picture(title: string, height: number, fontSize: number, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${quote(title)}" font-family="system-ui, sans-serif" font-size="${fontSize}" fill="#1f2933">
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
<text x="12" y="24" font-size="15" font-weight="600">${quote(title)}</text>
${parts.join('\n')}
</svg>
`;
}

type Curve = {
  readonly label: string /** Quantiles from 0 to 100 %. */;
  readonly percentiles: readonly number[];
};

type Panel = { readonly title: string; readonly curves: readonly Curve[] };

const LEFT = 44;
const PLOT = 430;
const HEIGHT = 150;
const PANEL = HEIGHT + 62;
/** The fastest and the slowest few would only stretch the axis. */
const SHOWN = { from: 1, to: 97 };
const STYLES = [
  { color: '#2f6f8f', dash: '' },
  { color: '#b5482a', dash: '7 3' },
  { color: '#3f7d3a', dash: '2 3' },
  { color: '#6b4fa0', dash: '9 3 2 3' },
  { color: '#8a6d1f', dash: '4 4' },
  { color: '#1f2933', dash: '1 4' },
];

/** For each panel, the share of answers that have come, by milliseconds. */
export function curveChart(title: string, panels: readonly Panel[]): string {
  const height = TOP + panels.length * PANEL;
  const drawn = panels.map((panel, index) => drawPanel(panel, TOP + index * PANEL));
  return picture(title, height, 12, drawn);
}

function drawPanel({ title, curves }: Panel, top: number): string {
  const shown = curves.map(({ percentiles }) => percentiles.slice(SHOWN.from, SHOWN.to + 1));
  const least = Math.min(...shown.flat());
  const most = Math.max(...shown.flat(), least + Number.EPSILON);
  const x = (ms: number) => LEFT + ((ms - least) / (most - least)) * PLOT;
  const y = (percent: number) => top + 16 + HEIGHT - (percent / 100) * HEIGHT;
  const lines = shown.map((points, index) => {
    const { color, dash } = STYLES[index % STYLES.length] as (typeof STYLES)[0];
    const path = points.map((ms, at) => `${x(ms).toFixed(1)},${y(at + SHOWN.from).toFixed(1)}`).join(' ');
    const stroke = `fill="none" stroke="${color}" stroke-width="1.6"${dash && ` stroke-dasharray="${dash}"`}`;
    const level = top + 30 + index * 18;
    return [
      `<polyline points="${path}" ${stroke}/>`,
      `<line x1="${LEFT + PLOT + 20}" y1="${level}" x2="${LEFT + PLOT + 50}" y2="${level}" ${stroke}/>`,
      `<text x="${LEFT + PLOT + 56}" y="${level + 4}">${quote(curves[index]?.label ?? '')}</text>`,
    ].join('\n');
  });
  const grid = [0, 50, 100].map(
    (percent) =>
      `<line x1="${LEFT}" y1="${y(percent)}" x2="${LEFT + PLOT}" y2="${y(percent)}" stroke="#dde3e8"/><text x="${LEFT - 6}" y="${y(percent) + 4}" text-anchor="end">${percent} %</text>`,
  );
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const ms = least + (most - least) * share;
    return `<text x="${x(ms).toFixed(1)}" y="${top + 16 + HEIGHT + 16}" text-anchor="middle">${ms.toFixed(2)}${share === 1 ? ' ms' : ''}</text>`;
  });
  return [
    `<text x="12" y="${top + 4}" font-weight="600">${quote(title)}</text>`,
    ...grid,
    ...ticks,
    ...lines,
  ].join('\n');
}
