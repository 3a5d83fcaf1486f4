import type { CodeName } from './codes.ts';
import { DE, EN, ES, FR, PT, type UserMessageKey, type UserMessages } from './languages.ts';

/** Which message tells what. What is no business of the customer is told by `general`. */
const KEYS: Readonly<Partial<Record<CodeName, UserMessageKey>>> = {
  invalidVoucher: 'invalidVoucher',
  invalidPin: 'invalidPin',
  pinLocked: 'pinLocked',
  voucherNotActive: 'voucherNotActive',
  voucherAlreadyActivated: 'voucherAlreadyActivated',
  voucherAlreadyRedeemed: 'voucherAlreadyRedeemed',
  voucherBlocked: 'voucherBlocked',
  voucherCanceled: 'voucherCanceled',
  voucherNotAccepted: 'voucherNotAccepted',
  voucherExpired: 'voucherExpired',
  insufficientBalance: 'insufficientBalance',
  invalidAmount: 'invalidAmount',
  amountOutsideLimits: 'invalidAmount',
  redemptionAlreadyUpdated: 'redemptionAlreadyUpdated',
  notFound: 'notFound',
  serviceUnavailable: 'tryAgainLater',
  tooManyRequests: 'tryAgainLater',
  internalError: 'tryAgainLater',
  networkFailure: 'tryAgainLater',
  timedOut: 'tryAgainLater',
  unknownOutcome: 'unknownOutcome',
  aborted: 'aborted',
};

const languages = new Map<string, Readonly<Partial<UserMessages>>>([
  ['en', EN],
  ['fr', FR],
  ['pt', PT],
  ['es', ES],
  ['de', DE],
]);

/**
 * Adds a language for `userMessage`, or other words for one that is there.
 * @param tag such as `it` or `pt-BR`
 * @param messages those that are left out are told in the language without its region, else in English
 */
export function addLanguage(tag: string, messages: Readonly<Partial<UserMessages>>): void {
  const known = languages.get(tag.toLowerCase());
  languages.set(tag.toLowerCase(), { ...known, ...messages });
}

/**
 * The message for the customer, in the first of some languages that is known, or the nearest to it, else in English.
 * @param wanted tags, as they come: what is none of them must not keep the till from telling something
 */
export function userMessageOf(code: CodeName, ...wanted: readonly (string | null | undefined)[]): string {
  const key = KEYS[code] ?? 'general';
  for (const language of wanted) {
    const parts = typeof language === 'string' ? language.toLowerCase().split(/[-_]/) : [];
    for (let length = parts.length; length > 0; length--) {
      const message = languages.get(parts.slice(0, length).join('-'))?.[key];
      if (message !== undefined) return message;
    }
  }
  return EN[key];
}
