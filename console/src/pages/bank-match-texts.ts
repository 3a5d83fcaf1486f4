import { useLanguage } from '../i18n/index.tsx';

/** The texts of matching by hand. They come with its page, so that no other page loads them. */

const en = {
  tab: 'Match by hand',
  lead: 'Select one entry and the movements that it pays, or several entries and one movement.',
  entries: 'Open entries of the bank',
  movements: 'Open movements of the books',
  fits: 'Fits',
  left: 'open',
  sides: (entries: string, movements: string) => `Bank: ${entries} · Books: ${movements}`,
  differs: (difference: string) => `Difference: ${difference}`,
  several: 'Of one side, select only one.',
  first: (count: number) => `Only the newest ${count} are here.`,
};

const de: typeof en = {
  tab: 'Von Hand zuordnen',
  lead: 'Wählen Sie eine Buchung und die Bewegungen, die sie bezahlt, oder mehrere Buchungen und eine Bewegung.',
  entries: 'Offene Buchungen der Bank',
  movements: 'Offene Bewegungen der Bücher',
  fits: 'Passt',
  left: 'offen',
  sides: (entries: string, movements: string) => `Bank: ${entries} · Bücher: ${movements}`,
  differs: (difference: string) => `Unterschied: ${difference}`,
  several: 'Wählen Sie von einer Seite nur eine.',
  first: (count: number) => `Hier sind nur die neuesten ${count}.`,
};

const texts = { en, de } as const;

export const useMatchTexts = (): typeof en => texts[useLanguage().language];
