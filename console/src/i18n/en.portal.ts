/** The texts of the portal, and of empty lists. */
export const portal = {
  portal: {
    notCsv: 'This is a workbook, not a CSV file. In your spreadsheet, save it as CSV and choose that file.',
  },
  float: {
    none: 'Nothing has been paid in yet.',
    lasts: (days: number | null) =>
      days === null
        ? 'Not used lately'
        : days === 0
          ? 'Lasts for less than a day'
          : `Lasts for ${days} ${days === 1 ? 'day' : 'days'}`,
    payIn: 'Pay in',
    payInHow:
      'Transfer the amount to the account that your operator has given you. Put this text into the transfer, so that it is found:',
    payInTo: 'Transfer the amount to this account, with this reference, by which it is found:',
    payInCode: 'Scan it with the app of your bank, and type the amount.',
    reference: (merchant: string) => `FLOAT ${merchant}`,
    statement: 'Statement',
    month: 'Month',
  },
  sales: {
    today: 'Redeemed today',
    week: 'Redeemed in 7 days',
    month: 'Redeemed in 30 days',
    chart: (currency: string) => `Redeemed day by day, in ${currency}`,
    redemptions: (count: number, text: string) => `${text} ${count === 1 ? 'redemption' : 'redemptions'}`,
  },
  keys: {
    lead: 'A till signs in with a key and its secret. Rotate one without closing the shop.',
    byOperator: 'the operator',
    byMerchant: 'the merchant',
    withoutSecond:
      'This key gets codes without a second person, whom only downloads in the portal need. A till needs neither generate nor download.',
  },
  docs: {
    lead: 'Your first calls, with your own key. curl asks for its secret.',
    order: 'Order two vouchers',
    balance: 'Check a balance',
    redeem: 'Redeem',
    lookup: 'Look up a transaction',
    reference: 'Full API reference',
  },
  empty: {
    vouchers: 'No vouchers yet. They come with the first batch.',
    timeline: 'Nothing has happened to this voucher yet.',
    transactions: 'No transactions yet. They appear here with the first sale at a till.',
    ofMerchant: 'No activations or redemptions yet. Top-ups and orders are in the statement of the float.',
    exports: 'Nobody has exported the codes.',
    declines: 'Nothing was declined within the last 90 days.',
    batches: 'No orders yet. An order makes vouchers, which a float pays.',
    merchants: 'No merchants yet. Create the first one.',
    products: 'No products yet.',
    settlements: 'No statements yet. A draft settles closed days.',
    statements: 'No statements yet. Your operator makes one at the end of each period.',
    webhooks: 'No endpoints yet. An endpoint gets events as they happen.',
    audit: 'No changes yet.',
    users: 'No users yet.',
    tokens: 'No tokens yet. Create one for each program.',
    jobs: 'No jobs yet. Long work appears here with its progress.',
    files: 'No payout files yet. A file holds the approved settlements, for the bank.',
    keys: 'No keys yet. A till needs one.',
  },
  bank: {
    lead: 'The bank account against the books.',
    entries: 'Entries of the bank',
    movements: 'Movements of the books',
    statements: 'Statements',
    accounts: 'Accounts',
    payouts: 'Payouts that the bank made and the books lack',
    open: (account: string) => `Open: ${account}`,
    openEntries: (count: number) => `${count} ${count === 1 ? 'entry' : 'entries'} without a full match`,
    allMatched: 'Every entry of the bank is matched.',
    noEntries: 'No statements yet. Import the first one.',
    noMovements: 'Nothing has moved on the bank account yet.',
    noAccounts: 'No bank accounts yet. Name the first one.',
    noMappings: 'No columns are saved yet. Choose the file, then set its columns.',
    chooseFile: 'Choose a statement of the bank',
    guessed: 'The columns of this file are filled in. Check and save them, once for each bank.',
    readable: (entries: number) =>
      `${entries} ${entries === 1 ? 'entry' : 'entries'}. Nothing is imported yet.`,
    unreadable: 'This file is not imported: its errors are listed below.',
    more: (entries: number) => `and ${entries} more`,
  },
};
