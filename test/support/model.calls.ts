/**
 * A voucher in a call, by its serial number, with the right PIN or a wrong one. Without a serial number it is
 * an unknown code.
 */
export type Named = { readonly serial: string | undefined; readonly rightPin: boolean };
export type Asks = {
  readonly merchant: number;
  /** A wrong secret, or an invalid form. */
  readonly flaw?: 'secret' | 'form' | null;
};

/** A call, with everything that its answer depends on. */
export type Call = Asks &
  (
    | {
        readonly do: 'generate';
        readonly reference: string;
        readonly quantity: number;
        readonly amount: number | null;
        readonly product: string;
        /** The requested expiry. */
        readonly until: number | null;
      }
    | { readonly do: 'download' | 'lookup' | 'details'; readonly reference: string }
    | (Named & { readonly do: 'balance' })
    | (Named & { readonly do: 'redeem'; readonly amount: number; readonly reference: string | null })
    | (Named & { readonly do: 'activateByCode'; readonly reference: string | null })
    | {
        readonly do: 'activateBySerial';
        readonly serial: string | undefined;
        readonly amount: number | null;
        readonly reference: string;
      }
    | { readonly do: 'update'; readonly reference: string; readonly amount: number | undefined }
    | { readonly do: 'list'; readonly inForceOnly: boolean }
    | { readonly do: 'block' | 'unblock' | 'unlock' | 'replace'; readonly serial: string | undefined }
    | { readonly do: 'adjust'; readonly serial: string | undefined; readonly minor: number }
    | { readonly do: 'cashOut' | 'cancelVoucher'; readonly serial: string | undefined }
    | { readonly do: 'extend'; readonly serial: string | undefined; readonly until: number }
    | { readonly do: 'cancel' | 'produce'; readonly transactionId: string }
    | { readonly do: 'topUp'; readonly minor: number }
  );

/** An answer in the same form for both variants; a lookup that finds nothing is `60`. */
// biome-ignore lint/suspicious/noExplicitAny: the rules check its fields.
export type Answer = { readonly code: string; readonly replayed: boolean; readonly data: any };
