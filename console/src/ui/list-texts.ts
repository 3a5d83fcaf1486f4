import { useLanguage } from '../i18n/index.tsx';

/** The texts of the tools of a list. They come with them, so that no other page loads them. */

const en = {
  views: 'Saved views',
  save: 'Save view',
  edit: 'Edit view',
  remove: 'Remove',
  name: 'Name',
  where: 'The view is saved in this browser. To share it, copy the link of its tab.',
  isSecret: 'The name or a filter could be a code or a token. A browser must not store it.',
  notStored: 'This browser stores nothing.',
  columns: 'Columns',
  reset: 'Reset',
  up: (column: string) => `Move up: ${column}`,
  counting: 'Rows read so far:',
  exportAll: 'Rows that match the filters:',
  exportCapped: 'A file holds no more: narrow the filters.',
  download: 'Download CSV',
  workbook: 'Download XLSX',
  selected: (count: number) => `${count} selected`,
  unselect: 'Clear the selection',
};

const de: typeof en = {
  views: 'Gespeicherte Ansichten',
  save: 'Ansicht speichern',
  edit: 'Ansicht ändern',
  remove: 'Entfernen',
  name: 'Name',
  where: 'Die Ansicht bleibt in diesem Browser. Um sie zu teilen, kopieren Sie den Link ihres Reiters.',
  isSecret:
    'Der Name oder ein Filter könnte ein Code oder ein Token sein. Ein Browser darf sie nicht speichern.',
  notStored: 'Dieser Browser speichert nichts.',
  columns: 'Spalten',
  reset: 'Zurücksetzen',
  up: (column: string) => `Nach oben: ${column}`,
  counting: 'Bisher gelesene Zeilen:',
  exportAll: 'Zeilen, die zu den Filtern passen:',
  exportCapped: 'Mehr fasst eine Datei nicht: Grenzen Sie die Filter ein.',
  download: 'CSV herunterladen',
  workbook: 'XLSX herunterladen',
  selected: (count: number) => `${count} ausgewählt`,
  unselect: 'Auswahl aufheben',
};

const texts = { en, de };

export const useListTexts = (): typeof en => texts[useLanguage().language];
