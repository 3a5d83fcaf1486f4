import type { Catalogue } from './en.ts';

/** Die Berichte der Bücher und wer sie braucht; die Gründe, aus denen eine Anfrage abgelehnt wird. */
export const reports: Pick<Catalogue, 'reports' | 'books' | 'monthEnd' | 'declined'> = {
  reports: {
    'trial-balance': {
      title: 'Summen und Salden',
      use: 'Für die Buchhaltung: was sich je Kontenart bewegt hat, und dass es aufgeht.',
    },
    liability: { title: 'Verbindlichkeit', use: 'Für die Bilanz: was die Gutscheine wert sind.' },
    outstanding: {
      title: 'Ausstehend nach Tagen',
      use: 'Für die Finanzen: was gedeckt sein muss, Tag für Tag.',
    },
    aging: { title: 'Altersstruktur', use: 'Für die Planung: wann Wert verfällt, und was lange ruht.' },
    breakage: { title: 'Verfall', use: 'Für den Ertrag: was verfallen ist, und was es wohl wird.' },
    'float-statement': {
      title: 'Auszug der Prepaid-Konten',
      use: 'Für einen Händler: jede Bewegung seiner Prepaid-Konten.',
    },
    'settlement-statement': {
      title: 'Abrechnung',
      use: 'Für einen Händler: was er ausgezahlt bekommt, und warum.',
    },
    'issuer-acceptor': {
      title: 'Aussteller und Annehmer',
      use: 'Für das Netz: wer wessen Gutscheine eingelöst hat.',
    },
    dormancy: {
      title: 'Ruhende Gutscheine',
      use: 'Für die Aufsicht: Gutscheine, auf die niemand Anspruch erhebt.',
    },
    vat: { title: 'Umsatzsteuer', use: 'Für die Steuerberatung: Einzweck- und Mehrzweckgutscheine.' },
    'general-ledger': {
      title: 'Hauptbuch',
      use: 'Für die Finanzbuchhaltung: Buchungen mit Kontonummern.',
    },
    bank: { title: 'Bank', use: 'Für die Finanzen: das Bankkonto gegen die Bücher.' },
    safeguarding: {
      title: 'Sicherung der Gelder',
      use: 'Für die Finanzen und die Aufsicht: was anderen zusteht, und was die Bank dafür hält, Tag für Tag.',
    },
  },
  books: {
    days: 'Tage',
    reports: 'Berichte',
    charts: 'Diagramme',
    before: 'Vorheriger Monat',
    after: 'Nächster Monat',
    period: 'Zeitraum',
    ownPeriod: 'Andere Tage',
    periods: {
      month: 'Dieser Monat',
      lastMonth: 'Letzter Monat',
      quarter: 'Dieses Quartal',
      lastQuarter: 'Letztes Quartal',
      year: 'Dieses Jahr',
      lastYear: 'Letztes Jahr',
    },
    everyMerchant: 'Jeder Händler',
    breakdown: 'Gegliedert nach',
    noBreakdown: 'Nichts',
    waits: {
      'not-due': (day, due) => `Der ${day} kann ab ${due} abgeschlossen werden.`,
      'open-transaction': (day) => `Eine Transaktion, die zum ${day} gehören kann, ist noch nicht beendet.`,
      'other-close': (day) => `Der ${day} wird schon abgeschlossen.`,
      'voucher-in-use': (day) =>
        `Der ${day} wartet auf einen abgelaufenen Gutschein in Benutzung: Versuchen Sie es noch einmal.`,
    },
    prepared: (names: string) => `Vorbereitete Transaktionen: ${names}.`,
    unnumbered: 'Konten ohne Nummer',
    unnumberedHow: 'Das Hauptbuch braucht für jedes eine Nummer. Eine je Art von Konto genügt.',
    chooseMerchant: 'Diesen Bericht gibt es je Händler: Wählen Sie einen.',
    noRows: 'In diesem Zeitraum hat sich nichts bewegt.',
    leftOut: 'Spalten ohne Bewegung fehlen hier. Der Export enthält alle.',
    rules: 'Regeln',
    sign: 'Haben minus Soll',
    show: 'Zeigen',
    verify: 'Abgeschlossene Tage prüfen',
    verified: (days: number) =>
      `${days} ${days === 1 ? 'abgeschlossener Tag ist' : 'abgeschlossene Tage sind'} unverändert.`,
    broken: 'Ein abgeschlossener Tag hat sich geändert:',
    closedDays: (days: number) =>
      days === 0
        ? 'Kein Tag war fällig.'
        : `${days} ${days === 1 ? 'Tag wurde' : 'Tage wurden'} abgeschlossen.`,
  },
  monthEnd: {
    title: 'Monatsabschluss',
    days: 'Alle Tage sind abgeschlossen',
    bank: 'Alle Bankumsätze sind zugeordnet',
    drafts: 'Keine Abrechnung ist ein Entwurf',
    unpaid: 'Alle Abrechnungen sind bezahlt',
    disputes: 'Alle Beanstandungen sind beantwortet',
    left: (count: number) => `noch ${count}`,
    reports: 'Berichte des Monats',
    compared: 'Neben dem Vormonat',
    movement: 'Geld auf Gutscheinen',
    before: 'Vormonat',
    change: 'Veränderung',
  },
  declined: {
    title: 'abgelehnt',
    noCurrency: 'Der Code ist unbekannt, und eine Anfrage nennt keine Währung.',
  },
};
