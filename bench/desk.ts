import { measureBeside } from './desk.beside.ts';
import { fillDesk } from './desk.fill.ts';
import { measureLists } from './desk.measure.ts';
import { measureTills } from './desk.tills.ts';
import { type Given, keptIn, numberOf, wants } from './scenario.ts';
import { Stage } from './stage.ts';

const BESIDE = ['crowd', 'consoles', 'core'] as const;

/** The latency of operators on a large database, and the cost to tills. */
export async function run(given: Given): Promise<void> {
  const shape = { seconds: numberOf(given, 'seconds'), turns: numberOf(given, 'turns') };
  const stage = await Stage.open(keptIn(given));
  const vouchers = numberOf(given, 'vouchers');
  await fillDesk(stage, vouchers);
  const token = await stage.token({ roles: ['owner'], stepUp: true });
  if (wants(given, 'lists')) await measureLists(stage, token, numberOf(given, 'calls'));
  for (const kind of BESIDE) if (wants(given, kind)) await measureBeside(stage, token, vouchers, kind, shape);
  if (wants(given, 'tills')) await measureTills(stage, vouchers, shape);
}
