import {
  checkAmount,
  checkExpiryDate,
  checkSerialNumber,
  checkText,
  checkVoucher,
  refuseFields,
} from './check.ts';
import type { ActivateInput, GenerateInput, Variant } from './types.ts';
import type {
  WireActivateA,
  WireActivateB,
  WireBalanceRequestA,
  WireBalanceRequestB,
  WireGenerateA,
  WireGenerateB,
  WireRedeemA,
  WireRedeemB,
  WireUpdateA,
} from './wire.ts';

type CodeAndPin = { readonly code: string; readonly pin: string };
type Checked = { readonly reference: string; readonly decimals: number | undefined };

/** The requests of a variant. They throw for an argument that cannot be sent. */
export type Dialect<V extends Variant> = {
  readonly prefix: string;
  generate(
    request: GenerateInput<V>,
    checked: Checked & { readonly quantity: number },
  ): WireGenerateA | WireGenerateB;
  activate(request: ActivateInput<V>, checked: Checked): WireActivateA | WireActivateB;
  balance(voucher: CodeAndPin): WireBalanceRequestA | WireBalanceRequestB;
  redeem(voucher: CodeAndPin, amount: number, reference: string): WireRedeemA | WireRedeemB;
  /** Missing in a variant without updates. */
  update?(reference: string, amountUsed: number): WireUpdateA;
};

const VARIANT_A: Dialect<'a'> = {
  prefix: '/merchant-client/v2',

  generate(request, { reference, quantity, decimals }): WireGenerateA {
    refuseFields(request, ['expiryDate'], 'a');
    const productCode = checkText(request.productCode, 'productCode');
    return { reference, productCode, quantity, amount: checkAmount(request.value, 'value', { decimals }) };
  },

  activate(request, { reference }): WireActivateA {
    refuseFields(request, ['serialNumber', 'value'], 'a');
    return { ...checkVoucher(request), reference };
  },

  balance: (voucher): WireBalanceRequestA => voucher,

  redeem: (voucher, amount, reference): WireRedeemA => ({ ...voucher, amount, reference }),

  update: (reference, amountUsed): WireUpdateA => ({ reference, amountUsed }),
};

const VARIANT_B: Dialect<'b'> = {
  prefix: '/api/v2',

  generate(request, { reference, quantity, decimals }): WireGenerateB {
    refuseFields(request, ['productCode'], 'b');
    const value = checkValue(request.value, decimals);
    return { reference, quantity, value, expiryDate: checkExpiryDate(request.expiryDate) };
  },

  activate(request, { reference, decimals }): WireActivateB {
    refuseFields(request, ['code', 'pin'], 'b');
    const serialNumber = checkSerialNumber(request.serialNumber);
    return { serialNumber, value: checkValue(request.value, decimals), reference };
  },

  balance: ({ code, pin }): WireBalanceRequestB => ({ voucherCode: code, pin }),

  redeem: ({ code, pin }, amount, reference): WireRedeemB => ({ voucherCode: code, pin, amount, reference }),
};

/** An amount that may be left out. */
function checkValue(value: unknown, decimals: number | undefined): number | null {
  return value === undefined || value === null ? null : checkAmount(value, 'value', { decimals });
}

/** @throws TypeError for a variant that does not exist */
export function dialectOf(variant: Variant): Dialect<Variant> {
  if (variant === 'a') return VARIANT_A as Dialect<Variant>;
  if (variant === 'b') return VARIANT_B as Dialect<Variant>;
  throw new TypeError("Scrip: variant must be 'a' or 'b'");
}
