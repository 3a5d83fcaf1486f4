import type { Language } from './language.ts';

/** The names that the vouchers of a batch share, each with an identifier that can take its place. */
export type Batch = {
  readonly merchant: string;
  readonly merchantId: string;
  readonly product: string;
  readonly productCode: string;
  readonly reference: string;
  readonly transactionId: string;
  /** Whether the vouchers are worth nothing until they are activated. */
  readonly needsActivation: boolean;
  /** The GTIN of the product, 8 to 14 digits, for the bar code by which a till activates a voucher. */
  readonly gtin: string | null;
  /** How the cards look; null: black on white, with the names of the merchant and the product. */
  readonly design: Design | null;
};

/** The head of cards: a colored area with a logo and two lines. */
export type Design = {
  /** In place of the name of the merchant. */
  readonly title: string | null;
  /** In place of the name of the product. */
  readonly subtitle: string | null;
  /** Of the words on the card, unless the sheet is ordered in another one. */
  readonly language: Language;
  /** Colors such as `#003366`. */
  readonly background: string;
  readonly color: string;
  /** A picture that `readLogo` has returned. */
  readonly logo: Uint8Array | null;
};

/** A voucher with everything that is printed of it. */
export type Voucher = {
  readonly serialNumber: bigint;
  readonly code: string;
  readonly pin: string;
  /** In major units, as decimal text; null where it is given at activation. */
  readonly value: string | null;
  readonly currency: string;
  readonly expiresAt: Date;
  /** The last day on which it is valid, such as `2030-12-31`. */
  readonly lastDay: string;
};
