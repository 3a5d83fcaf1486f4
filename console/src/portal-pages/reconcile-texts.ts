import { useLanguage } from '../i18n/index.tsx';

/** The texts of the reconcile page. They come with it, so that no other page loads them. */

const en = {
  reconcileTitle: 'Reconcile your till',
  reconcileLead:
    'Compares the sales in a CSV file of your till with Scrip. The file needs a column of references and one of amounts, and stays in this browser.',
  chooseFile: 'Choose a CSV file',
  referenceColumn: 'Column of the reference',
  amountColumn: 'Column of the amount',
  compare: 'Compare',
  oneColumn: 'This file has fewer than two columns. Save it as CSV with a reference and an amount.',
  notAmount: (line: string, text: string) =>
    `Line ${line}: “${text}” is not an amount. Correct it in the file, or choose another column.`,
  rowsRead: (rows: string) => `${rows} ${rows === '1' ? 'row' : 'rows'} in the file.`,
  transactionsRead: (count: string) => `${count} transactions read.`,
  missingHere: 'Missing in Scrip',
  missingThere: 'Missing in your file',
  differs: 'Different amounts',
  agree: 'Everything agrees.',
  agreeing: (count: number) => `${count} agree. These differ:`,
};

const de: typeof en = {
  reconcileTitle: 'Kasse abgleichen',
  reconcileLead:
    'Vergleicht die Verkäufe in einer CSV-Datei Ihrer Kasse mit Scrip. Die Datei braucht eine Spalte mit Referenzen und eine mit Beträgen und bleibt in diesem Browser.',
  chooseFile: 'CSV-Datei wählen',
  referenceColumn: 'Spalte der Referenz',
  amountColumn: 'Spalte des Betrags',
  compare: 'Vergleichen',
  oneColumn: 'Diese Datei hat weniger als zwei Spalten. Speichern Sie sie als CSV mit Referenz und Betrag.',
  notAmount: (line: string, text: string) =>
    `Zeile ${line}: „${text}“ ist kein Betrag. Berichtigen Sie die Datei, oder wählen Sie eine andere Spalte.`,
  rowsRead: (rows: string) => `${rows} ${rows === '1' ? 'Zeile' : 'Zeilen'} in der Datei.`,
  transactionsRead: (count: string) => `${count} Transaktionen gelesen.`,
  missingHere: 'Fehlt in Scrip',
  missingThere: 'Fehlt in Ihrer Datei',
  differs: 'Abweichende Beträge',
  agree: 'Alles stimmt überein.',
  agreeing: (count: number) => `${count} ${count === 1 ? 'stimmt' : 'stimmen'} überein. Diese weichen ab:`,
};

const texts = { en, de };

export const useReconcileTexts = (): typeof en => texts[useLanguage().language];
