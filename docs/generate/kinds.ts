import { ACCOUNTS, MOVEMENT_KINDS, movementOf } from '../../src/ledger/kinds.ts';

/** The kinds of accounts, or of movements, in Markdown. */
export function kindsText(of: string): string {
  if (of === 'accounts')
    return [
      '| account | what it holds |',
      '| --- | --- |',
      ...Object.entries(ACCOUNTS).map(([kind, { holds }]) => `| ${kind} | ${holds} |`),
    ].join('\n');
  return [
    '| movement | when | from → to |',
    '| --- | --- | --- |',
    ...MOVEMENT_KINDS.map((kind) => {
      const { says, moves, reverses } = movementOf(kind);
      const what = reverses ? `${says} (takes back ${reverses})` : says;
      return `| ${kind} | ${what} | ${moves.map((each) => each.replace(' ', ' → ')).join(', ')} |`;
    }),
  ].join('\n');
}
