/** An attack of the tests, and what came of it. */
export type Attack = {
  /** The test file. */
  readonly file: string;
  /** The name of the test: what holds. */
  readonly name: string;
  readonly outcome: 'held' | 'broken' | 'not tried';
};

/** The files whose tests attack. */
export const isAttack = (name: string) => name.includes('.attacks.');

/** The table of attacks and outcomes, broken ones first, and below it how many there are of each. */
export function attackTable(attacks: readonly Attack[]): string {
  const rank = { broken: 0, 'not tried': 1, held: 2 };
  const areaOf = ({ file }: Attack) => file.replace(/\.attacks|\.e2e|\.test\.ts$/g, '');
  const rows = attacks
    .map((attack) => ({ ...attack, area: areaOf(attack) }))
    .sort(
      (one, other) =>
        rank[one.outcome] - rank[other.outcome] ||
        one.area.localeCompare(other.area) ||
        one.name.localeCompare(other.name),
    );
  const width = Math.max(0, ...rows.map(({ area }) => area.length));
  const lines = rows.map(
    ({ outcome, area, name }) => `${outcome.padEnd('not tried'.length)}  ${area.padEnd(width)}  ${name}\n`,
  );
  const counts = (['held', 'broken', 'not tried'] as const).map(
    (outcome) => `${attacks.filter((each) => each.outcome === outcome).length} ${outcome}`,
  );
  return `${lines.join('')}${attacks.length} attacks: ${counts.join(', ')}\n`;
}
