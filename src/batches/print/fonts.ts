import { fileURLToPath } from 'node:url';

const file = (name: string) => fileURLToPath(import.meta.resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`));

/** The fonts of a sheet. They are embedded in it: it looks at the printer's as it does here. */
export const FONTS = {
  text: file('DejaVuSansCondensed'),
  strong: file('DejaVuSansCondensed-Bold'),
  digits: file('DejaVuSansMono-Bold'),
} as const;
