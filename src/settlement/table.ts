import { tableOf } from '../operation.ts';
import { approveSettlement } from './approve.ts';
import { disputes } from './disputes.ts';
import { settlementDocument } from './document.ts';
import { draftSettlement } from './draft.ts';
import { payouts } from './pay.ts';
import { payoutFile, payoutFiles } from './payout-file.ts';
import { settlementProof } from './proof.ts';
import { listedSettlements } from './settlements.ts';
import { showSettlement } from './show.ts';
import { terms } from './terms.ts';

/** The operations on settlements, in the order of their documentation. */
export const SETTLEMENT = tableOf(
  ...[listedSettlements, showSettlement, draftSettlement, approveSettlement],
  ...[payouts.pay, payouts.returned, settlementDocument, settlementProof, payoutFile, payoutFiles],
  ...[terms.list, terms.set, disputes.list, disputes.dispute, disputes.answer],
);
