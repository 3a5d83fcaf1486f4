import type { Catalogue } from './en.ts';

/** Bestellungen, und Änderungen vieler Gutscheine auf einmal. */
export const batches: Pick<Catalogue, 'batch' | 'bulk'> = {
  batch: {
    details: 'Angaben',
    exports: 'Exporte',
    running: 'Erzeugte Gutscheine',
    ordered: 'Bestellt',
    open: 'Gültig',
    activated: 'Aktiviert',
    left: (percent: string) => `${percent} % des Aktivierten`,
    balance: 'Guthaben',
    print: 'Druckbögen',
    printHow:
      'Ein PDF mit einer Karte je Gutschein, versiegelt mit einem Kennwort: Wer es bestellt, lädt die Datei herunter; wer zustimmt, erfährt das Kennwort.',
    card: 'Ersatzkarte',
    cardHow:
      'Ein PDF allein mit der neuen Karte, versiegelt mit einem Kennwort: Wer es bestellt, lädt die Datei herunter; wer zustimmt, erfährt das Kennwort.',
    cardEffect: (serial: string) => `Die Karte des Gutscheins ${serial}`,
    sheetsOf: (name: string) => `Bestellt von ${name}`,
    until: (time: string) => `zum Herunterladen bis ${time}`,
    cancelAll: 'Alle stornieren',
    blockAll: 'Alle sperren',
    effect: (quantity: string, money: string) =>
      `${quantity} ${quantity === '1' ? 'Gutschein' : 'Gutscheine'} über zusammen ${money}`,
    progress: (done: string, total: string) => `${done} von ${total} Gutscheinen erzeugt`,
    notYet: 'Sie erscheinen hier, sobald alle hergestellt sind.',
    download: 'Codes und PINs laden Sie über die API herunter, mit der Referenz dieser Bestellung.',
  },
  bulk: {
    hint: 'Bis zu 10.000, eine je Zeile.',
    notSerial: (text: string) =>
      `„${text}“ ist keine Seriennummer. Berichtigen Sie die Zeile, und sehen Sie noch einmal nach.`,
    preview: 'Vorschau',
    declined: 'Werden abgelehnt',
    run: (what: string, count: string) => `${what}: ${count} ${count === '1' ? 'Gutschein' : 'Gutscheine'}`,
    effect: (total: string, changes: string, declined: string) =>
      `Gutscheine: ${total}. Geändert werden ${changes}, abgelehnt ${declined}.`,
  },
};
