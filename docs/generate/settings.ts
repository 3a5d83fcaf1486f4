import { SETTINGS } from '../../src/config.ts';

/** The settings, from the list that the program reads. */
export function settingsText(): string {
  return Object.values(SETTINGS)
    .flatMap(({ name, fallback, description }) => {
      const standard = fallback === undefined ? 'none' : `\`${fallback}\``;
      return [`## \`${name}\``, '', description, '', `Default: ${standard}.`, ''];
    })
    .join('\n');
}
