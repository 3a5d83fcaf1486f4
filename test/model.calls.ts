/**
 * A voucher as a call names it: by its serial number, with the right PIN or a wrong one; no serial is an
 * unknown code.
 */
export type Named = { readonly serial: string | undefined; readonly rightPin: boolean };
export type Asks = {
  readonly merchant: number;
  /** Sent with a wrong secret, or in a wrong form. */
  readonly flaw?: 'secret' | 'form' | null;
};

/** A call, with everything in it that decides about its answer. */
export type Call = Asks &
  (
    | {
        readonly do: 'generate';
        readonly reference: string;
        readonly quantity: number;
        readonly amount: number | null;
        readonly product: string;
        /** The expiry that is asked for. */
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
    | { readonly do: 'extend'; readonly serial: string | undefined; readonly until: number }
    | { readonly do: 'cancel' | 'produce'; readonly transactionId: string }
    | { readonly do: 'topUp'; readonly minor: number }
  );

/** An answer, alike for both variants; a look-up that finds nothing is `60`. */
// biome-ignore lint/suspicious/noExplicitAny: the rules look into it.
export type Answer = { readonly code: string; readonly replayed: boolean; readonly data: any };
