/** Which roles may do what: the rows of the table of rights (docs/reference/operator-api.md, "Roles"). */

/** Everything, with codes masked. */
export const SEE = ['owner', 'finance', 'operations', 'auditor'] as const;
/** Vouchers, transactions, merchants, and what belongs to them. */
export const SEE_VOUCHERS = ['owner', 'finance', 'support', 'operations', 'auditor'] as const;
/** API keys and webhooks. */
export const SEE_KEYS = ['owner', 'finance', 'operations', 'developer', 'auditor'] as const;
/** Block, unblock, unlock a PIN, extend and replace vouchers. */
export const CARE = ['owner', 'support', 'operations'] as const;
/** Floats and corrections: whatever moves money. */
export const MONEY = ['owner', 'finance'] as const;
/** Merchants, products, limits and batches. */
export const MANAGE = ['owner', 'operations'] as const;
/** API keys and webhooks. */
export const CONNECT = ['owner', 'operations', 'developer'] as const;
/** Tokens, users, settings and the key ring. */
export const GOVERN = ['owner'] as const;
export const SEE_TOKENS = ['owner', 'auditor'] as const;
/** Export the books. */
export const EXPORT = ['owner', 'finance', 'auditor'] as const;
/** Prove the books and the audit. */
export const VERIFY = ['owner', 'finance', 'operations', 'auditor'] as const;
