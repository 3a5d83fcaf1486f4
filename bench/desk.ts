/**
 * `npm run bench:desk`: the latency of operators on a large database, and the cost to tills.
 *
 *   npm run bench:desk -- --vouchers 10000000 --keep /data/desk    the folder is used again next time
 *   npm run bench:desk -- lists            every list of /operator/v1, and the first screen of the console
 *   npm run bench:desk -- tills            redeem, balance and list beside a small database, in turns
 *   npm run bench:desk -- crowd consoles   tills beside a hundred heavy requests, beside ten consoles
 *   npm run bench:desk -- core             tills beside a process that keeps a core busy
 */
import { mkdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { Caller } from '../src/operation.ts';
import { createToken } from '../src/people/tokens.ts';
import { leavingNothing } from '../test/support/leave-nothing.ts';
import { measureBeside } from './desk.beside.ts';
import { fillDesk } from './desk.fill.ts';
import { measureLists } from './desk.measure.ts';
import { measureTills } from './desk.tills.ts';
import { Stage } from './stage.ts';

const BESIDE = ['crowd', 'consoles', 'core'] as const;
const PARTS = ['lists', 'tills', ...BESIDE];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    vouchers: { type: 'string', default: '100000' },
    keep: { type: 'string' },
    calls: { type: 'string', default: '40' },
    seconds: { type: 'string', default: '4' },
    turns: { type: 'string', default: '3' },
  },
});
const unknown = positionals.find((part) => !PARTS.includes(part));
if (unknown !== undefined) {
  process.stderr.write(`there is no part "${unknown}": ${PARTS.join(', ')}\n`);
  process.exit(2);
}
const wants = (part: string) => positionals.length === 0 || positionals.includes(part);
const shape = { seconds: Number(values.seconds), turns: Number(values.turns) };

/** The owner's token: an operator's right to everything. */
async function makeToken(stage: Stage): Promise<string> {
  const principal = {
    kind: 'command-line',
    id: null,
    userId: null,
    name: 'bench',
    roles: ['owner'],
    merchantId: null,
    origin: 'bench',
    requestId: null,
    steppedUp: true,
  } as const;
  const caller = { ...stage.operator, principal } as Caller;
  const { token } = await createToken.run(caller, { roles: ['owner'], stepUp: true });
  return `Bearer ${token}`;
}

await leavingNothing(async () => {
  if (values.keep) await mkdir(values.keep, { recursive: true });
  const stage = await Stage.open(values.keep);
  const vouchers = Number(values.vouchers);
  await fillDesk(stage, vouchers);
  const token = await makeToken(stage);
  if (wants('lists')) await measureLists(stage, token, Number(values.calls));
  for (const kind of BESIDE) if (wants(kind)) await measureBeside(stage, token, vouchers, kind, shape);
  if (wants('tills')) await measureTills(stage, vouchers, shape);
});
