import { SETTLEMENT_APPROVAL } from './approve.ts';
import { DISPUTES } from './disputes.ts';
import { SETTLEMENT_DOCUMENTS } from './document.ts';
import { SETTLEMENT_DRAFTS } from './draft.ts';
import { PAYOUTS } from './pay.ts';
import { PAYOUT_FILES } from './payout-file.ts';
import { SETTLEMENTS } from './settlements.ts';
import { SETTLEMENT_DETAILS } from './show.ts';
import { SETTLEMENT_TERMS } from './terms.ts';

/** The operations on settlements, in the order of their documentation. */
export const SETTLEMENT = [
  ...SETTLEMENTS,
  ...SETTLEMENT_DETAILS,
  ...SETTLEMENT_DRAFTS,
  ...SETTLEMENT_APPROVAL,
  ...PAYOUTS,
  ...SETTLEMENT_DOCUMENTS,
  ...PAYOUT_FILES,
  ...SETTLEMENT_TERMS,
  ...DISPUTES,
];
