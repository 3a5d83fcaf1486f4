import Type, { type Static } from 'typebox';
import { toNumber } from '../money.ts';
import { Day, Id, MerchantId, Nullable, NullableText, NullableTime, Text, Time, Word } from '../schema.ts';
import type { Settlement as SettlementInfo } from '../settlement/settlements.ts';

export const STATES = ['DRAFT', 'APPROVED', 'PAID', 'RETURNED'] as const;
export const SettlementId = Id('settlement');

export const SettlementSchema = Type.Object({
  id: SettlementId,
  merchantId: MerchantId,
  merchant: Text,
  state: Word(STATES),
  number: NullableText,
  currency: Text,
  firstDay: Day,
  lastDay: Day,
  startsAt: Time,
  endsAt: Time,
  zone: Text,
  carried: Type.Number({ description: 'The balance of the settlement account before.' }),
  closing: Type.Number({ description: 'The balance at the end.' }),
  outstanding: Type.Number({ description: 'The unpaid amount of earlier settlements at that time.' }),
  payable: Type.Number({ description: 'The amount to be paid; 0 if it is carried over.' }),
  dueOn: Day,
  closingHash: Text,
  madeBy: Nullable(Text, { description: 'Null for a merchant.' }),
  madeAt: Time,
  approvedBy: Nullable(Text, {
    description: 'Who proposed the approval, and who agreed; null for a merchant, and for a draft.',
  }),
  approvedAt: NullableTime,
  contentHash: NullableText,
  openDisputes: Type.Integer({ description: 'Disputes without an answer.' }),
  fileId: Nullable(Text, {
    description: 'The payout file that pays it; null: none, or the payment came back.',
  }),
});

export type Settlement = Static<typeof SettlementSchema>;

/** Returns a settlement as its merchant sees it, without the people of the operator. */
export const withoutPeople = <One extends Settlement>(settlement: One): One => ({
  ...settlement,
  madeBy: null,
  approvedBy: null,
});

/** Returns a settlement as every door shows it. */
export function toSettlementJson(settlement: SettlementInfo): Settlement {
  const { carried, closing, outstanding, payable, ...rest } = settlement;
  return {
    ...rest,
    id: String(settlement.id),
    merchantId: String(settlement.merchantId),
    carried: toNumber(carried),
    closing: toNumber(closing),
    outstanding: toNumber(outstanding),
    payable: toNumber(payable),
    fileId: settlement.fileId === null ? null : String(settlement.fileId),
  };
}
