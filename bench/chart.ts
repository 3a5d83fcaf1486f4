/** Charts as SVG: horizontal bars, light, readable in print and without color. */

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

export const quote = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

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
export function picture(title: string, height: number, fontSize: number, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${quote(title)}" font-family="system-ui, sans-serif" font-size="${fontSize}" fill="#1f2933">
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
<text x="12" y="24" font-size="15" font-weight="600">${quote(title)}</text>
${parts.join('\n')}
</svg>
`;
}
