import { createHash } from 'node:crypto';
import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Actor, Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { moneyIn, toSum } from '../money.ts';
import { changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { Refusal } from '../refusal.ts';
import { type Approved, drawStatement, readLetter, writeStatement } from './document.ts';
import { computeInterval } from './draft.ts';
import {
  announce,
  getSettlement,
  lockSettlement,
  lockSettlementsOf,
  ofSettlement,
  payableOf,
  type Settlement,
  SettlementId,
  SettlementSchema,
} from './settlements.ts';
import { linesOf, ratesOf } from './show.ts';

/** The approval of a draft: it gets its number and its documents, and never changes again. */

/**
 * Approves a draft. A settlement that is already approved is returned unchanged.
 * @throws Problem; Refusal `58` if the draft has to be made again
 */
export async function approve(
  operator: Operator,
  id: string | number,
): Promise<{ settlement: Settlement; replayed: boolean }> {
  const { service, actor } = operator;
  return service.db.transaction(async (tx) => {
    const found = await getSettlement(tx, id);
    await lockSettlementsOf(tx, found.merchantId);
    const draft = await lockSettlement(tx, found.id);
    if (draft.state !== 'DRAFT') return { settlement: draft, replayed: true };
    const { currency, firstDay, lastDay } = draft;
    const { decimals } = moneyIn(currency, 0n);
    const now = await computeInterval(tx, { ...draft, decimals });
    if ((['payable', 'closing', 'outstanding'] as const).some((name) => now[name] !== draft[name]))
      throw new Refusal('58', { message: 'an earlier settlement has changed since: draft it again' });
    const approvedAt = service.clock();
    const taken = await takeNumber(tx, draft);
    const { csv, pdf, contentHash } = await drawDocuments(tx, { ...draft, number: taken.text, approvedAt });
    await tx.query(sql`
update settlements set
  state = 'APPROVED', year = ${taken.year}, number = ${taken.number}, approved_by = ${bothOf(actor)},
  approved_at = ${approvedAt}, content_hash = ${contentHash}, csv = ${csv}, pdf = ${pdf}
where id = ${draft.id} and state = 'DRAFT'`);
    const settlement = await getSettlement(tx, id);
    await announce(tx, 'settlement.approved', settlement, approvedAt);
    // Four eyes compare the state before: a draft that was made again has to be confirmed.
    const payable = payableOf(draft);
    const before = { firstDay, lastDay, closing: toSum(currency, draft.closing), payable };
    // `reconcile` compares the settlement with this entry.
    const after = {
      number: taken.text,
      payable,
      dueOn: draft.dueOn,
      root: draft.root,
      contentHash: contentHash.toString('hex'),
      pdfHash: createHash('sha256').update(pdf).digest('hex'),
    };
    await audit(tx, operator, { action: 'settlement.approve', subject: `settlement ${id}`, before, after });
    return { settlement, replayed: false };
  });
}

type Taken = { readonly year: number; readonly number: number; readonly text: string };

/** Takes the next settlement number of a merchant in a year. The row is locked, so no number is skipped. */
async function takeNumber(tx: Queries, { merchantId, lastDay }: Settlement): Promise<Taken> {
  const [taken] = await tx.query<Taken>(sql`
insert into settlement_numbers as n (merchant_id, year, last_number)
values (${merchantId}, ${Number(lastDay.slice(0, 4))}, 1)
on conflict (merchant_id, year) do update set last_number = n.last_number + 1
returning year, last_number as number, settlement_number(merchant_id, year, last_number) as text`);
  if (!taken) throw new Error('no number for a settlement');
  return taken;
}

/** Returns the documents of a settlement, with the hash of the CSV. */
async function drawDocuments(tx: Queries, approved: Approved) {
  const lines = await linesOf(tx, approved);
  const csv = writeStatement(approved, lines);
  const contentHash = createHash('sha256').update(csv).digest();
  const hashed = { ...approved, contentHash: contentHash.toString('hex') };
  const [rates, letter] = [await ratesOf(tx, approved), await readLetter(tx, approved)];
  return { csv, contentHash, pdf: await drawStatement(hashed, lines, rates, letter) };
}

/** Returns the names of the person that proposed a change, and of the one that approved it. */
const bothOf = ({ name, approvedBy }: Actor) => (approvedBy === undefined ? name : `${name}, ${approvedBy}`);

export const approveSettlement = changing({
  name: 'settlement.approve',
  summary: 'Approve a draft: it gets its number, and never changes again',
  path: '/settlements/:id/approve',
  input: { id: SettlementId },
  output: Type.Object({ ...SettlementSchema.properties, replayed: Type.Boolean() }),
  roles: MONEY,
  approval: twoPeople({ why: 'It decides what a merchant is paid, and never changes again.' }),
  agreement: {
    sentence: 'Approve settlement {number} of {merchant}, {from} to {to}: {amount} is to be paid by {dueOn}',
    of: (asked) => ofSettlement(asked),
  },
  async run(caller, { id }) {
    const { settlement, replayed } = await approve(caller, id);
    return { ...settlement, replayed };
  },
});

export const OPERATIONS = tableOf(approveSettlement);
