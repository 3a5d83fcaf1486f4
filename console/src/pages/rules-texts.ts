import { useLanguage } from '../i18n/index.tsx';

/** The texts of the rules. They come with their page, so that no other page loads them. */

const en = {
  lead: 'What the reports go by where a law, a contract or an estimate decides.',
  breakage: 'Estimated breakage',
  breakageUse: 'R5 compares the estimate with what was redeemed.',
  dormancy: 'Dormancy',
  dormancyUse: 'R10 lists the vouchers that a law counts as unclaimed property.',
  vat: 'VAT',
  vatUse: 'R11 taxes single-purpose vouchers at the issue, multi-purpose vouchers at the redemption.',
  accounts: 'Account numbers',
  accountsUse: 'R12 and the export of the general ledger write these numbers of your bookkeeping.',
  every: 'Every product',
  none: 'No rule yet.',
};

const de: typeof en = {
  lead: 'Wonach die Berichte gehen, wo ein Gesetz, ein Vertrag oder eine Schätzung entscheidet.',
  breakage: 'Geschätzter Verfall',
  breakageUse: 'R5 vergleicht die Schätzung mit dem, was eingelöst wurde.',
  dormancy: 'Ruhende Gutscheine',
  dormancyUse: 'R10 nennt die Gutscheine, auf die nach einem Gesetz niemand mehr Anspruch erhebt.',
  vat: 'Umsatzsteuer',
  vatUse: 'R11 besteuert Einzweckgutscheine bei der Ausgabe, Mehrzweckgutscheine bei der Einlösung.',
  accounts: 'Kontonummern',
  accountsUse: 'R12 und der Export des Hauptbuchs schreiben diese Nummern Ihrer Buchhaltung.',
  every: 'Jedes Produkt',
  none: 'Noch keine Regel.',
};

const texts = { en, de };

export const useRulesTexts = (): typeof en => texts[useLanguage().language];
