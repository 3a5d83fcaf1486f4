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

/** How a variant spells the requests, each from checked parts; what it throws is an argument that cannot be sent. */
export type Dialect<V extends Variant> = {
  readonly prefix: string;
  generate(request: GenerateInput<V>, checked: Checked & { readonly quantity: number }): WireGenerateA | WireGenerateB;
  activate(request: ActivateInput<V>, checked: Checked): WireActivateA | WireActivateB;
  balance(voucher: CodeAndPin): WireBalanceRequestA | WireBalanceRequestB;
  redeem(voucher: CodeAndPin, amount: number, reference: string): WireRedeemA | WireRedeemB;
  /** Absent in a variant that has no updates. */
  update?(reference: string, amountUsed: number): WireUpdateA;
};
