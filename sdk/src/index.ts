/** The merchant's client of Scrip, a prepaid voucher service. */

export type { CodeName, StatusCode } from './codes.ts';
export { STATUS_CODES } from './codes.ts';
export { type FieldError, type Operation, ScripError, UnknownOutcomeError } from './errors.ts';
export type { UserMessageKey, UserMessages } from './languages.ts';
export type { ScripOptions } from './options.ts';
export type { Retry } from './retry.ts';
export { Scrip } from './scrip.ts';
export type * from './types.ts';
export { addLanguage } from './user-messages.ts';
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookHeaders,
  type WebhookRefusal,
  WebhookVerificationError,
} from './webhook.ts';
export type * from './webhook-events.ts';
