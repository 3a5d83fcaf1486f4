/** The entry of a release in the changelog: its heading has a date once it is released. */

const OPEN = 'Not released yet. ';

/** Whether a release has an entry that has no date yet. */
export function isOpen(text: string, version: string): boolean {
  return text.includes(`\n## ${version}\n`);
}

/** Dates the entry of a release, such as by 2026-11-28. */
export function dateEntry(text: string, version: string, date: string): string {
  return text.replace(`\n## ${version}\n`, `\n## ${version} (${date})\n`).replace(OPEN, '');
}
