import { posix } from 'node:path';
import MarkdownIt from 'markdown-it';
import type { Page } from './pages.ts';

/** Makes HTML of a page: links lead to pages of the site, headings have anchors. */

export type Heading = { readonly level: number; readonly text: string; readonly anchor: string };
/** What is found by the search: the text below one heading. */
type Passage = { readonly heading: string; readonly anchor: string; readonly text: string };

export type Rendered = {
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly passages: readonly Passage[];
  /** Files of docs/ that the page links to or shows, by their paths in the project. */
  readonly assets: readonly string[];
};

const DEEPEST_IN_CONTENTS = 3;
const ASSET = /^docs\/.+\.(svg|png|json|jsonl|txt)$/;

const markdown = new MarkdownIt({ html: false, linkify: false, typographer: false });
type Token = ReturnType<typeof markdown.parse>[number];

/** @throws Error for a link to a page that is not there */
export function render(page: Page, pages: ReadonlyMap<string, Page>): Rendered {
  const tokens = markdown.parse(page.text, {});
  const assets: string[] = [];
  const headings = nameHeadings(tokens);
  for (const token of tokens.flatMap((each) => each.children ?? [])) {
    const name = token.type === 'image' ? 'src' : 'href';
    const link = token.attrGet(name)?.toString();
    if (!link || (token.type !== 'image' && token.type !== 'link_open')) continue;
    const target = resolve(link, page, pages);
    if (target.asset) assets.push(target.asset);
    token.attrSet(name, target.link);
    if (target.isSource) token.attrSet('class', 'source');
  }
  return { html: frame(tokens), headings, passages: readPassages(tokens, headings), assets };
}

/** Tables and programs may be wider than a screen: they scroll by themselves, by keys too. */
function frame(tokens: Token[]): string {
  for (const token of tokens) {
    if (token.type === 'fence') token.attrSet('tabindex', '0');
    // The policy of the site allows no style in a page.
    const style = token.attrGet('style');
    token.attrs = token.attrs?.filter(([name]) => name !== 'style') ?? null;
    if (style === 'text-align:right') token.attrSet('class', 'right');
  }
  return (
    markdown.renderer
      .render(tokens, markdown.options, {})
      .replaceAll('<table>', '<div class="table" tabindex="0" role="group" aria-label="Table"><table>')
      .replaceAll('</table>', '</table></div>')
      // A file of the source is not on the site.
      .replace(
        /<a href="([^"]*)" class="source">([\s\S]*?)<\/a>/g,
        '<span title="$1 in the project">$2</span>',
      )
  );
}

type Target = { readonly link: string; readonly asset?: string; readonly isSource?: boolean };

function resolve(link: string, page: Page, pages: ReadonlyMap<string, Page>): Target {
  if (/^([a-z]+:|#)/.test(link)) return { link };
  const [file = '', anchor] = link.split('#');
  const path = posix.join(posix.dirname(page.path), file).replace(/\/$/, '');
  const found = pages.get(path) ?? pages.get(`${path}/README.md`);
  if (found)
    return { link: relative(page.address, found.address) + (anchor === undefined ? '' : `#${anchor}`) };
  if (path.endsWith('.md')) throw new Error(`${page.path} links to ${link}, which is not there`);
  if (ASSET.test(path)) return { link: relative(page.address, path.slice('docs/'.length)), asset: path };
  return { link: path, isSource: true };
}

/** The way from one address of the site to another, so that the site works below any prefix. */
export function relative(from: string, to: string): string {
  return posix.relative(posix.dirname(from), to);
}

/** The anchor of a heading, as the usual renderers make it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}

function nameHeadings(tokens: readonly Token[]): Heading[] {
  const headings: Heading[] = [];
  for (const [at, token] of tokens.entries()) {
    if (token.type !== 'heading_open') continue;
    const text = textOf(tokens[at + 1]);
    const same = headings.filter((each) => anchorOf(each.text) === anchorOf(text)).length;
    const anchor = same === 0 ? anchorOf(text) : `${anchorOf(text)}-${same}`;
    token.attrSet('id', anchor);
    headings.push({ level: Number(token.tag.slice(1)), text, anchor });
  }
  return headings;
}

const textOf = (token: Token | undefined): string =>
  token?.children
    ? token.children.map((child) => (child.type === 'softbreak' ? ' ' : child.content)).join('')
    : (token?.content ?? '');

/** Headings that are listed beside the page. */
export const listed = (headings: readonly Heading[]): Heading[] =>
  headings.filter(({ level }) => level > 1 && level <= DEEPEST_IN_CONTENTS);

function readPassages(tokens: readonly Token[], headings: readonly Heading[]): Passage[] {
  const passages: { heading: string; anchor: string; texts: string[] }[] = [];
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const { text = '', anchor = '' } = headings[passages.length] ?? {};
      passages.push({ heading: text, anchor, texts: [] });
    } else if (token.type === 'fence' || (token.type === 'inline' && tokens[at - 1]?.type !== 'heading_open'))
      passages.at(-1)?.texts.push(textOf(token));
  }
  return passages.map(({ heading, anchor, texts }) => ({ heading, anchor, text: texts.join(' ') }));
}
