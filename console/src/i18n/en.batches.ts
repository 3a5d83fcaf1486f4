/** Batches, and changes of many vouchers at once. */
export const batches = {
  batch: {
    details: 'Details',
    exports: 'Exports',
    running: 'Vouchers produced',
    ordered: 'Ordered',
    open: 'Valid',
    activated: 'Activated',
    left: (percent: string) => `${percent} % of what was activated`,
    balance: 'Balance',
    print: 'Printed sheets',
    printHow:
      'A PDF with a card for each voucher, sealed with a passphrase: the person who orders it downloads the file, and the person who approves it is shown the passphrase.',
    card: 'Replacement card',
    cardHow:
      'A PDF with the new card alone, sealed with a passphrase: the person who orders it downloads the file, and the person who approves it is shown the passphrase.',
    cardEffect: (serial: string) => `The card of voucher ${serial}`,
    sheetsOf: (name: string) => `Ordered by ${name}`,
    until: (time: string) => `can be downloaded until ${time}`,
    cancelAll: 'Cancel all',
    blockAll: 'Block all',
    effect: (quantity: string, money: string) =>
      `${quantity} ${quantity === '1' ? 'voucher that carries' : 'vouchers that carry'} ${money}`,
    progress: (done: string, total: string) => `${done} of ${total} vouchers produced`,
    notYet: 'They are listed here as soon as all of them are produced.',
    download: 'Download codes and PINs by the API, with the reference of this order.',
  },
  bulk: {
    hint: 'Up to 10,000, one per line.',
    notSerial: (text: string) => `“${text}” is not a serial number. Correct the line, and look again.`,
    preview: 'Preview',
    declined: 'Will be declined',
    run: (what: string, count: string) => `${what}: ${count} ${count === '1' ? 'voucher' : 'vouchers'}`,
    effect: (total: string, changes: string, declined: string) =>
      `Of ${total} ${total === '1' ? 'voucher' : 'vouchers'}, ${changes} will change and ${declined} will be declined.`,
  },
};
