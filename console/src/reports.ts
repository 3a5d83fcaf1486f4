/** The reports of the books, and who needs each. */
export const REPORTS = [
  {
    number: 'R1',
    name: 'trial-balance',
    use: 'For the accountant: what moved on each kind of account, and that it adds up.',
  },
  { number: 'R2', name: 'liability', use: 'For the balance sheet: what vouchers in circulation are worth.' },
  { number: 'R3', name: 'outstanding', use: 'For treasury: what must be covered, day by day.' },
  { number: 'R4', name: 'aging', use: 'For planning: when value expires, and how long it has been idle.' },
  { number: 'R5', name: 'breakage', use: 'For revenue: what expired, and what is likely to.' },
  { number: 'R6', name: 'float-statement', use: 'For a merchant: every movement of its prepaid balance.' },
  { number: 'R7', name: 'settlement-statement', use: 'For a merchant: what it is paid, and why.' },
  { number: 'R8', name: 'transactions', use: 'For a merchant: every transaction, to reconcile a till.' },
  { number: 'R9', name: 'issuer-acceptor', use: 'For the network: who redeemed the vouchers of whom.' },
  { number: 'R10', name: 'dormancy', use: 'For compliance: vouchers that became unclaimed property.' },
  { number: 'R11', name: 'vat', use: 'For the tax adviser: single- and multi-purpose vouchers.' },
  { number: 'R12', name: 'general-ledger', use: 'For the accounting system: entries with account numbers.' },
  { number: 'R13', name: 'bank', use: 'For finance: the bank account against the books.' },
] as const;
