import type { TestMerchant } from './merchant.ts';

export type Rule = {
  /** Short and stable, so that reports can be compared. */
  readonly id: string;
  /** The rule, in a sentence. */
  readonly title: string;
  /** The variants in which it holds, or `between` the two. */
  readonly variants: 'a' | 'b' | 'ab' | 'between';
  /** A permission that the rule needs beside those that every merchant has. */
  readonly needs?: 'update-redemption';
  run(merchant: TestMerchant): Promise<void>;
};
