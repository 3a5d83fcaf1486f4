import type { Catalogue } from './en.ts';

/** Die Texte des Portals und leerer Listen. */
export const portal: Pick<Catalogue, 'portal' | 'float' | 'sales' | 'keys' | 'docs' | 'empty' | 'bank'> = {
  portal: {
    notCsv:
      'Das ist eine Arbeitsmappe, keine CSV-Datei. Speichern Sie sie im Tabellenprogramm als CSV, und wählen Sie diese Datei.',
  },
  float: {
    none: 'Noch wurde nichts eingezahlt.',
    lasts: (days: number | null) =>
      days === null
        ? 'Zuletzt nicht benutzt'
        : days === 0
          ? 'Reicht für weniger als einen Tag'
          : `Reicht für ${days} ${days === 1 ? 'Tag' : 'Tage'}`,
    payIn: 'Einzahlen',
    payInHow:
      'Überweisen Sie den Betrag auf das Konto, das Ihnen der Betreiber genannt hat. Mit diesem Verwendungszweck wird die Zahlung zugeordnet:',
    payInTo:
      'Überweisen Sie den Betrag auf dieses Konto, mit diesem Verwendungszweck, an dem er erkannt wird:',
    payInCode: 'Mit der App Ihrer Bank scannen, den Betrag eingeben.',
    reference: (merchant: string) => `FLOAT ${merchant}`,
    statement: 'Auszug',
    month: 'Monat',
  },
  sales: {
    today: 'Heute eingelöst',
    week: 'In 7 Tagen eingelöst',
    month: 'In 30 Tagen eingelöst',
    chart: (currency: string) => `Eingelöst, Tag für Tag, in ${currency}`,
    redemptions: (count: number, text: string) => `${text} ${count === 1 ? 'Einlösung' : 'Einlösungen'}`,
  },
  keys: {
    lead: 'Eine Kasse meldet sich mit Schlüssel und Geheimnis an. Erneuern können Sie ihn, während der Laden geöffnet ist.',
    byOperator: 'dem Betreiber',
    byMerchant: 'dem Händler',
    withoutSecond:
      'Dieser Schlüssel erhält Codes ohne zweite Person: Die braucht nur das Herunterladen im Portal. Eine Kasse braucht weder „Bestellen“ noch „Herunterladen“.',
  },
  docs: {
    lead: 'Die ersten Aufrufe, mit Ihrem eigenen Schlüssel. curl fragt nach dessen Geheimnis.',
    order: 'Zwei Gutscheine bestellen',
    balance: 'Guthaben abfragen',
    redeem: 'Einlösen',
    lookup: 'Eine Transaktion nachschlagen',
    reference: 'Die vollständige API-Referenz',
  },
  empty: {
    vouchers: 'Noch keine Gutscheine. Sie kommen mit der ersten Charge.',
    timeline: 'Mit diesem Gutschein ist noch nichts geschehen.',
    transactions: 'Noch keine Transaktionen. Sie erscheinen hier, sobald eine Kasse verkauft.',
    ofMerchant:
      'Noch keine Aktivierungen oder Einlösungen. Aufladungen und Bestellungen stehen im Auszug des Prepaid-Kontos.',
    exports: 'Niemand hat die Codes exportiert.',
    declines: 'In den letzten 90 Tagen wurde nichts abgelehnt.',
    batches: 'Noch keine Bestellungen. Eine Bestellung erzeugt Gutscheine, die ein Prepaid-Konto bezahlt.',
    merchants: 'Noch keine Händler. Legen Sie den ersten an.',
    products: 'Noch keine Produkte.',
    settlements: 'Noch keine Abrechnungen. Ein Entwurf rechnet abgeschlossene Tage ab.',
    statements: 'Noch keine Abrechnungen. Der Betreiber erstellt eine am Ende jedes Zeitraums.',
    webhooks: 'Noch keine Endpunkte. Ein Endpunkt erhält Ereignisse, sobald sie geschehen.',
    audit: 'Noch keine Änderungen.',
    users: 'Noch keine Benutzer.',
    tokens: 'Noch keine Tokens. Legen Sie für jedes Programm eines an.',
    jobs: 'Noch keine Aufträge. Lange Arbeiten erscheinen hier mit ihrem Fortschritt.',
    files: 'Noch keine Auszahlungsdateien. Eine Datei enthält die freigegebenen Abrechnungen für die Bank.',
    keys: 'Noch keine Schlüssel. Eine Kasse braucht einen.',
  },
  bank: {
    lead: 'Das Bankkonto gegen die Bücher.',
    entries: 'Buchungen der Bank',
    movements: 'Bewegungen der Bücher',
    statements: 'Auszüge',
    accounts: 'Konten',
    payouts: 'Zahlungen der Bank, die in den Büchern fehlen',
    open: (account: string) => `Offen: ${account}`,
    openEntries: (count: number) => `${count} ${count === 1 ? 'Umsatz' : 'Umsätze'} nicht ganz zugeordnet`,
    allMatched: 'Alle Bankumsätze sind zugeordnet.',
    noEntries: 'Noch keine Auszüge. Lesen Sie den ersten ein.',
    noMovements: 'Auf dem Bankkonto hat sich noch nichts bewegt.',
    noAccounts: 'Noch keine Bankkonten. Benennen Sie das erste.',
    noMappings:
      'Noch sind keine Spalten gespeichert. Wählen Sie die Datei und legen Sie dann ihre Spalten fest.',
    chooseFile: 'Kontoauszug wählen',
    guessed: 'Die Spalten dieser Datei sind eingetragen. Prüfen und speichern Sie sie, einmal je Bank.',
    readable: (entries: number) =>
      `${entries} ${entries === 1 ? 'Buchung' : 'Buchungen'}. Noch ist nichts eingelesen.`,
    unreadable: 'Diese Datei wird nicht eingelesen: Ihre Fehler stehen unten.',
    more: (entries: number) => `und ${entries} weitere`,
  },
};
