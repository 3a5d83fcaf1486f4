import type * as print from '@scrip/print';
import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import { kept, type Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { assign, insertInto, sql } from '../db/sql.ts';
import { listingAll } from '../listing.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MANAGE, SEE_VOUCHERS } from '../principal.ts';
import { invalid, notFound, Problem, requireRow } from '../problem.ts';
import { columnsOf, storedAs } from '../row.ts';
import { Base64, Line, Nullable, Positional, Titled, Word } from '../schema.ts';

/** Designs: how the printed cards of products look (docs/how-to/print.md, "A design of your own"). */

/** The languages of cards and documents. */
export const LANGUAGES = ['en', 'de'] as const satisfies readonly print.Language[];

export const CardLanguage = Word(LANGUAGES, {
  'x-labels': { en: 'English', de: 'German' },
  description: 'The language of the cards. Without it, that of their design, or English.',
});

export const DesignName = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,50}$',
  description: 'The name of a design.',
  examples: ['spring'],
});

/** A logo of 256 kB, in base64. */
const LOGO_TEXT_MAX = 350_000;
const BODY_MAX_BYTES = 400_000;
const LISTED_MAX = 1_000;

const Color = (description: string, example: string) =>
  Type.String({ pattern: '^#[0-9a-f]{6}$', description, examples: [example] });

const TEXTS = {
  title: Nullable(Line(60, 'In place of the name of the merchant.', 'Happy birthday')),
  subtitle: Nullable(Line(80, 'In place of the name of the product.', 'Gift card')),
};
const LOOK = {
  language: Word(LANGUAGES, {
    'x-labels': { en: 'English', de: 'German' },
    description: 'The language of the words on the card.',
  }),
  background: Titled('Background', Color('The color behind the logo, the names and the value.', '#003366')),
  color: Titled('Text color', Color('The color of the names and the value.', '#ffffff')),
};
const DEFAULTS = {
  title: null,
  subtitle: null,
  language: 'en',
  background: '#ffffff',
  color: '#000000',
} as const;

const Look = Type.Object({ ...TEXTS, ...LOOK });
const DesignSchema = Type.Object({ name: DesignName, ...Look.properties, hasLogo: Type.Boolean() });
type Design = Static<typeof DesignSchema>;

const SHOWN = sql`name, ${columnsOf(Look)}, logo is not null as "hasLogo"`;

/** Returns the design of cards, as they are drawn. */
export async function findDesign(db: Queries, name: string): Promise<print.Design | undefined> {
  const [design] = await db.query<print.Design>(sql`
select ${columnsOf(Look)}, logo from card_designs where name = ${name}`);
  return design;
}

/** @throws Problem if there is no such design */
export async function requireDesign(db: Queries, name: string | null | undefined): Promise<void> {
  if (typeof name === 'string' && !(await findDesign(db, name))) throw notFound(`design ${name}`);
}

/** Whether a logo is being read: one at a time, since a file can be made to take a core for some seconds. */
const readingOf = kept(() => ({ isBusy: false }));

/** Returns the picture of a logo. @throws Problem for a file that is no logo, or while another one is read */
async function pictureOf(service: Service, file: string): Promise<Buffer> {
  const { readLogo, LogoError } = await import('@scrip/print');
  const reading = readingOf(service);
  if (reading.isBusy)
    throw new Problem('too-many-requests', 'another logo is being read: try again in a moment');
  reading.isBusy = true;
  try {
    return await readLogo(Buffer.from(file, 'base64'));
  } catch (error) {
    if (error instanceof LogoError) throw invalid('logo', 'logo', error.message);
    throw error;
  } finally {
    reading.isBusy = false;
  }
}

/** @throws Problem for a text that the fonts of cards have no letters for */
async function checkTexts(texts: Readonly<Record<string, unknown>>): Promise<void> {
  const { isPrintable } = await import('@scrip/print');
  for (const field of Object.keys(TEXTS)) {
    const text = texts[field];
    if (typeof text === 'string' && !isPrintable(text))
      throw invalid(field, 'letters', 'has letters that the font of the cards lacks, or mixes directions');
  }
}

/** The least contrast of a text with its background (WCAG 2.2, success criterion 1.4.3). */
const CONTRAST_MIN = 4.5;

/** @throws Problem for colors that are too alike to be read */
function checkContrast({ background, color }: Pick<Design, 'background' | 'color'>): void {
  const [dark, light] = [luminanceOf(background), luminanceOf(color)].sort((one, other) => one - other);
  const contrast = ((light as number) + 0.05) / ((dark as number) + 0.05);
  if (contrast >= CONTRAST_MIN) return;
  // Rounded down, since 4.49 is not enough.
  const shown = Math.floor(contrast * 100) / 100;
  const text = `has a contrast of ${shown}:1 with the background ${background}, and needs ${CONTRAST_MIN}:1`;
  throw invalid('color', 'contrast', text);
}

/** Returns the relative luminance of a color, from 0 to 1, as WCAG defines it. */
function luminanceOf(color: string): number {
  const part = (at: number) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

const set = changing({
  name: 'design.set',
  title: 'Set a design',
  summary: 'Make a design of cards, or change it; what is left out stays as it is',
  description:
    'Products take it by its name (`product.set`). It is drawn when sheets are made, so a change shows on the ' +
    `next sheets. The contrast of its colors is at least ${CONTRAST_MIN}:1.`,
  path: '/designs',
  input: {
    name: Positional(DesignName),
    ...Type.Partial(Look).properties,
    logo: Type.Optional(
      Nullable(
        Base64(
          LOGO_TEXT_MAX,
          'A PNG, or an SVG of shapes only, of up to 256 kB. It is stored as a picture; null removes it.',
          'iVBORw0KGgo=',
        ),
      ),
    ),
  },
  output: DesignSchema,
  roles: MANAGE,
  approval: alone('It moves no money: it says how cards look.'),
  bodyMaxBytes: BODY_MAX_BYTES,
  // A logo is read before the transaction begins.
  effect: 'outside',
  async run(caller, { name, logo, ...given }) {
    const { db } = caller.service;
    await checkTexts(given);
    const picture = typeof logo === 'string' ? await pictureOf(caller.service, logo) : logo;
    return db.transaction(async (tx) => {
      const [before] = await tx.query<Design>(
        sql`select ${SHOWN} from card_designs where name = ${name} for update`,
      );
      const look = { ...(before ?? DEFAULTS), ...given };
      checkContrast(look);
      const row = { ...storedAs(Look, look), ...(picture !== undefined && { logo: picture }) };
      const [after] = (await tx.query<Design>(sql`
${insertInto('card_designs', { name, ...row })}
on conflict (name) do update set ${assign(row)} returning ${SHOWN}`)) as [Design];
      await audit(tx, caller, {
        action: 'design.set',
        subject: `design ${name}`,
        ...(before && { before }),
        after: { ...after, ...(picture !== undefined && { logo: picture === null ? 'removed' : 'new' }) },
      });
      return after;
    });
  },
});

const list = listingAll({
  name: 'design.list',
  summary: 'List the designs of cards',
  path: '/designs',
  item: DesignSchema,
  columns: ['name', 'title', 'subtitle', 'background', 'color', 'hasLogo'],
  roles: SEE_VOUCHERS,
  rows: ({ service }) =>
    service.readDb.query(sql`select ${SHOWN} from card_designs order by name limit ${LISTED_MAX}`),
});

const remove = changing({
  name: 'design.remove',
  summary: 'Remove a design of cards that no product has',
  path: '/designs/:name/remove',
  input: { name: DesignName },
  output: Type.Object({ name: DesignName, removed: Type.Boolean() }),
  roles: MANAGE,
  approval: alone('It moves no money: it says how cards look.'),
  async run(caller, { name }) {
    return caller.service.db.transaction(async (tx) => {
      const before = await requireRow<Design>(
        tx,
        sql`select ${SHOWN} from card_designs where name = ${name} for update`,
        `design ${name}`,
      );
      const [product] = await tx.query<{ code: string }>(sql`
select code from products where design = ${name} order by id limit 1`);
      if (product) throw new Problem('conflict', `the product ${product.code} has this design`);
      await tx.query(sql`delete from card_designs where name = ${name}`);
      await audit(tx, caller, { action: 'design.remove', subject: `design ${name}`, before });
      return { name, removed: true };
    });
  },
});

export const designs = { set, list, remove };

export const OPERATIONS = tableOf(set, list, remove);
