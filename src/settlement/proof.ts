import { checkpointOf, signCheckpoint } from '../books/checkpoint.ts';
import { closedDays } from '../books/export.rows.ts';
import { leafHash } from '../books/merkle.ts';
import { linesOf, withHidden } from '../books/proof.ts';
import { readTexts } from '../books/publish.ts';
import { settledRows } from '../books/settled.ts';
import type { Service } from '../context.ts';
import type { Database, Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { accountOf } from '../ledger/journal.ts';
import { textIn } from '../money.ts';
import { reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { Problem } from '../problem.ts';
import { FileSchema } from '../schema.ts';
import { addDays } from '../time.ts';
import { getSettlement, type Settlement, SettlementId } from './settlements.ts';

/**
 * The proof of a settlement, which its merchant verifies without Scrip: its rows in the trees of closed days,
 * the days in a signed checkpoint, and the entries of the bank that paid it (docs/reference/proof.md).
 */

/** The version of the file. */
const FORMAT = 2;

/** The figures of a settlement that its proof repeats, besides the amounts. */
const HEAD = [
  ...(['id', 'number', 'merchantId', 'merchant', 'currency', 'firstDay', 'lastDay', 'zone'] as const),
  ...(['state', 'dueOn', 'closingHash', 'contentHash', 'root'] as const),
];
const AMOUNTS = ['carried', 'closing', 'outstanding', 'payable'] as const;

function headOf(settlement: Settlement) {
  const { currency } = settlement;
  const amounts = AMOUNTS.map((name) => [name, textIn(currency, settlement[name])]);
  return Object.fromEntries([...HEAD.map((name) => [name, settlement[name]]), ...amounts]);
}

/**
 * Writes the proof of a settlement as JSON. Of an entry of the bank that pays other settlements too, it
 * contains only the part of this one.
 */
async function* writeSettlementProof(service: Service, settlement: Settlement): AsyncGenerator<string> {
  const { readDb } = service;
  const { merchantId, currency, firstDay, lastDay } = settlement;
  const account = await accountOf(readDb, Number(merchantId), currency, 'SETTLEMENT');
  const slices = await slicesOf(readDb, settlement);
  const head = { settlementProof: FORMAT, settlement: headOf(settlement), account: String(account) };
  yield `${JSON.stringify(head).slice(0, -1)},\n"proof":[\n`;
  const days = await closedDays(readDb, firstDay, addDays(lastDay, 1));
  let comma = '';
  for await (const line of linesOf(readDb, days, { account: { number: String(account), slices } })) {
    yield `${comma}${JSON.stringify(line)}`;
    comma = ',\n';
  }
  const payments = await paymentsOf(readDb, settlement);
  const checkpoint = await checkpointAround(service, firstDay, lastDay);
  yield `\n],\n"checkpoint":${JSON.stringify(checkpoint)},\n"payments":${JSON.stringify(payments)}}\n`;
}

/** Returns the beginnings of the slices that contain rows of a settlement. */
async function slicesOf(db: Database, settlement: Settlement): Promise<Set<number>> {
  const found = await db.query<{ at: Date }>(sql`
select distinct slice_at as at from (${settledRows(settlement)}) r`);
  return new Set(found.map(({ at }) => at.getTime()));
}

/**
 * Returns a checkpoint of all closed days, and the hidden parts of its tree before and after some of them,
 * from which together with their closings its root is computed.
 */
async function checkpointAround(service: Pick<Service, 'db' | 'keys'>, firstDay: string, lastDay: string) {
  const texts = await readTexts(service);
  const dayOf = (text: string | undefined) => (JSON.parse(text ?? '[]') as string[])[2] ?? '';
  const leaves = texts.map((text) => {
    const day = dayOf(text);
    return day >= firstDay && day <= lastDay ? { lines: [day] } : { hash: leafHash(text) };
  });
  const lines = await Array.fromAsync(withHidden(leaves));
  return {
    note: signCheckpoint(checkpointOf(texts), service.keys.signers()),
    before: lines.slice(0, lines.indexOf(firstDay)),
    after: lines.slice(lines.indexOf(lastDay) + 1),
  };
}

/** Returns the payouts of a settlement and their returns, each with the entries of the bank that show it. */
async function paymentsOf(db: Queries, { id, currency }: Settlement) {
  type Payment = { amount: bigint; entries: { amount: string }[] };
  const payments = await db.query<Payment>(sql`
select p.id as "transactionId", p.kind::text as kind, p.amount_minor as amount,
  p.bank_reference as "bankReference", p.value_date::text as "valueDate", coalesce((
    select json_agg(json_build_object('reference', e.entry_reference, 'bookedOn', e.booked_on,
      'amount', m.amount_minor::text) order by e.id)
    from bank_matches m join bank_entries e on e.id = m.entry_id where m.movement_id = p.id
  ), '[]') as entries
from settlement_payouts p where p.settlement_id = ${id} order by p.id`);
  return payments.map(({ amount, entries, ...payment }) => ({
    ...payment,
    amount: textIn(currency, amount),
    entries: entries.map((each) => ({ ...each, amount: textIn(currency, BigInt(each.amount)) })),
  }));
}

export const settlementProof = reading({
  name: 'settlement.proof',
  summary: 'Get the proof of an approved settlement, which scrip-client compares with the file of a till',
  path: '/settlements/:id/proof',
  input: { id: SettlementId },
  output: FileSchema,
  files: ['application/json'],
  isHeavy: true,
  roles: SEE,
  async run({ service }, { id }) {
    const settlement = await getSettlement(service.readDb, id);
    if (settlement.number === null)
      throw new Problem('conflict', `settlement ${id} is a draft: it is proved when it is approved`);
    return {
      name: `settlement-${settlement.number}.json`,
      mediaType: 'application/json',
      content: writeSettlementProof(service, settlement),
    };
  },
});

export const OPERATIONS = tableOf(settlementProof);
