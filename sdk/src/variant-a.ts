import { checkAmount, checkText, checkVoucher, refuseFields } from './check.ts';
import type { Dialect } from './dialect.ts';
import type { ActivateInput, GenerateInput } from './types.ts';
import type { WireActivateA, WireBalanceRequestA, WireGenerateA, WireRedeemA, WireUpdateA } from './wire.ts';

/** How variant A spells the requests. */
export const VARIANT_A: Dialect<'a'> = {
  prefix: '/merchant-client/v2',

  generate(request: GenerateInput<'a'>, { reference, quantity, decimals }): WireGenerateA {
    refuseFields(request, ['expiryDate'], 'a');
    const productCode = checkText(request.productCode, 'productCode');
    return { reference, productCode, quantity, amount: checkAmount(request.value, 'value', { decimals }) };
  },

  activate(request: ActivateInput<'a'>, { reference }): WireActivateA {
    refuseFields(request, ['serialNumber', 'value'], 'a');
    return { ...checkVoucher(request), reference };
  },

  balance: (voucher): WireBalanceRequestA => voucher,

  redeem: (voucher, amount, reference): WireRedeemA => ({ ...voucher, amount, reference }),

  update: (reference, amountUsed): WireUpdateA => ({ reference, amountUsed }),
};
