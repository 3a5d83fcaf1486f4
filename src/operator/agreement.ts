import { findMerchant } from '../merchants/merchants.ts';
import type { Agreed, AnyOperation, Asked, Value } from '../operation.ts';
import { showVoucher } from '../vouchers/operate.ts';

/** What two people agree on, in words. It is shown before it is approved, and kept with the approval. */
export type Statement = {
  /** The sentence, with the names of values in braces. */
  readonly sentence: string;
  readonly values: Readonly<Record<string, Value>>;
  /** A page of the console about what it concerns. */
  readonly link: string;
};

/** Returns what an operation asks two people to agree on. Call it after the operation, in its rehearsal. */
export async function statementOf({ name, agreement }: AnyOperation, asked: Asked): Promise<Statement> {
  if (!agreement) throw new Error(`${name} is approved by nobody, and says nothing`);
  const { link, ...given } = await agreement.of(asked);
  const values = Object.entries(given).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
  return { sentence: agreement.sentence, values: Object.fromEntries(values), link };
}

/** Returns a statement as one sentence of English. */
function inWords({ sentence, values }: Pick<Statement, 'sentence' | 'values'>): string {
  return sentence.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = values[name];
    return value === null || value === undefined ? 'the operator' : [value].flat().join(', ');
  });
}

/** Returns a statement as every door shows it: in English, and with its parts for other languages. */
export const toStatementJson = (statement: Statement) => ({ text: inWords(statement), ...statement });

/** Returns the values before and after the change with an action, or the first change. */
export function changeIn({ made }: Pick<Asked, 'made'>, action?: string) {
  const found = action === undefined ? made[0] : made.find((each) => each.action === action);
  const values = (side: unknown) => (side ?? {}) as Readonly<Record<string, Value>>;
  return { before: values(found?.before), after: values(found?.after) };
}

type Asking = Pick<Asked, 'caller'>;

/** Returns the name of a merchant; null for the operator. */
export async function merchantNamed(
  { caller }: Asking,
  id: string | number | null | undefined,
): Promise<string | null> {
  if (id === null || id === undefined) return null;
  return (await findMerchant(caller.service.db, Number(id)))?.name ?? `merchant ${id}`;
}

/** Returns the name of a merchant, and its page. */
export async function ofMerchant(
  asking: Asking,
  id: string | number,
  tab?: string,
): Promise<{ readonly merchant: string | null; readonly link: string }> {
  const link = `/merchants/${id}${tab === undefined ? '' : `?tab=${tab}`}`;
  return { merchant: await merchantNamed(asking, id), link };
}

/** Returns a voucher, the merchant that had it generated, and its page. */
export async function ofVoucher(asking: Asking, serialNumber: string): Promise<Agreed> {
  const { merchantId } = await showVoucher(asking.caller.service, BigInt(serialNumber));
  const merchant = await merchantNamed(asking, merchantId);
  return { voucher: serialNumber, merchant, link: `/vouchers/${serialNumber}` };
}
