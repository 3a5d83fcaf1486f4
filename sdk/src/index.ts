/** The merchant's client of Scrip, a prepaid voucher service. */

export type { Retry } from './call.ts';
export type { CodeName, StatusCode } from './codes.ts';
export { STATUS_CODES } from './codes.ts';
export { type FieldError, type Operation, ScripError, UnknownOutcomeError } from './errors.ts';
export { addLanguage, type UserMessageKey, type UserMessages } from './messages.ts';
export type { ScripOptions } from './options.ts';
export { DamagedStoreError, type PendingCall, type PendingStore } from './pending.ts';
export type { Recovered, RecoverOptions } from './recover.ts';
export { Scrip } from './scrip.ts';
export type * from './types.ts';
export {
  signWebhook,
  type VerifyOptions,
  verifyWebhook,
  type WebhookHeaders,
  type WebhookRefusal,
  WebhookVerificationError,
} from './webhook.ts';
export type * from './webhook-events.ts';
