import type { Service } from '../context.ts';
import { toNumber } from '../money.ts';
import type { Condition, Fields } from '../operation.ts';
import { findBySerials } from '../vouchers/find.ts';
import { showVoucher } from '../vouchers/operate.ts';
import { readSettings } from './settings.ts';

/** The limits up to which one person moves money, or changes many vouchers. */

/** The operation moves more money than the limit. */
export function aboveLimit(
  amountOf: (input: Fields, service: Service) => number | undefined | Promise<number | undefined>,
): Condition {
  return {
    text: 'the amount is above the limit',
    async applies({ service }, input) {
      const amount = await amountOf(input, service);
      if (amount === undefined) return false;
      return Math.abs(amount) > (await readSettings(service.db)).approvalAmount;
    },
  };
}

/** Returns what leaves a voucher: without an amount, its whole balance. */
export async function amountFromVoucher({ amount, serialNumber }: Fields, service: Service): Promise<number> {
  if (amount !== undefined) return Number(amount);
  return toNumber((await showVoucher(service, BigInt(String(serialNumber)))).balance);
}

export const MANY_VOUCHERS: Condition = {
  text: 'it concerns a whole batch, or more vouchers than the limit',
  applies: async ({ service }, { serialNumbers }) =>
    !Array.isArray(serialNumbers) || serialNumbers.length > (await readSettings(service.db)).approvalVouchers,
};

export const LARGE_VOUCHER: Condition = {
  text: 'the balance of one of the vouchers is above the limit',
  async applies({ service }, { serialNumbers }) {
    if (!Array.isArray(serialNumbers)) return false;
    const { approvalAmount } = await readSettings(service.db);
    const found = await findBySerials(service, serialNumbers.map(BigInt));
    return found.some(({ balance }) => toNumber(balance) > approvalAmount);
  },
};
