import { checkAmount, checkExpiryDate, checkSerialNumber, refuseFields } from './check.ts';
import type { Dialect } from './dialect.ts';
import type { ActivateInput, GenerateInput } from './types.ts';
import type { WireActivateB, WireBalanceRequestB, WireGenerateB, WireRedeemB } from './wire.ts';

/** An amount that may be left out. */
function checkValue(value: unknown, decimals: number | undefined): number | null {
  return value === undefined || value === null ? null : checkAmount(value, 'value', { decimals });
}

/** How variant B spells the requests. It has no updates. */
export const VARIANT_B: Dialect<'b'> = {
  prefix: '/api/v2',

  generate(request: GenerateInput<'b'>, { reference, quantity, decimals }): WireGenerateB {
    refuseFields(request, ['productCode'], 'b');
    const value = checkValue(request.value, decimals);
    return { reference, quantity, value, expiryDate: checkExpiryDate(request.expiryDate) };
  },

  activate(request: ActivateInput<'b'>, { reference, decimals }): WireActivateB {
    refuseFields(request, ['code', 'pin'], 'b');
    const serialNumber = checkSerialNumber(request.serialNumber);
    return { serialNumber, value: checkValue(request.value, decimals), reference };
  },

  balance: ({ code, pin }): WireBalanceRequestB => ({ voucherCode: code, pin }),

  redeem: ({ code, pin }, amount, reference): WireRedeemB => ({ voucherCode: code, pin, amount, reference }),
};
