import type { Page, Section } from './pages.ts';
import { listed, type Rendered, relative } from './render.ts';

/** The frame of every page of the site: search, navigation, contents, the pages before and after. */

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? '');

export function layOut(page: Page, rendered: Rendered, sections: readonly Section[]): string {
  const to = (address: string) => relative(page.address, address);
  const order = sections.flatMap(({ groups }) => groups.flatMap(({ pages }) => pages));
  const at = order.indexOf(page);
  const section = sections.find(({ groups }) => groups.some(({ pages }) => pages.includes(page)));
  const title = page.address === 'index.html' ? 'Scrip documentation' : `${page.title} · Scrip`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="${to('assets/site.css')}">
<link rel="stylesheet" href="${to('assets/text.css')}">
<link rel="stylesheet" href="${to('assets/search.css')}">
<link rel="icon" href="${to('assets/icon.svg')}" type="image/svg+xml">
<script type="module" src="${to('assets/search.js')}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="name" href="${to('index.html')}"><img src="${to('assets/icon.svg')}" alt="" width="24" height="24">Scrip</a>
<search hidden>
<input type="search" id="search" placeholder="Search (press /)" aria-label="Search the documentation"
 aria-controls="results" autocomplete="off" spellcheck="false">
<div id="results" role="region" aria-label="Search results" aria-live="polite" hidden></div>
</search>
</header>
<div class="columns">
${navigation(page, sections, to)}
<main id="content" tabindex="-1">
${section ? `<p class="section">${escapeHtml(section.title.replace(/:.*/, ''))}</p>` : ''}
<article>
${rendered.html}</article>
<nav class="around" aria-label="Pages before and after">
${around('Before', order[at - 1], at > 0, to)}${around('Next', order[at + 1], true, to)}
</nav>
</main>
${contents(rendered)}
</div>
</body>
</html>
`;
}

type To = (address: string) => string;

function navigation(page: Page, sections: readonly Section[], to: To): string {
  const link = (each: Page) =>
    `<li><a href="${to(each.address)}"${each === page ? ' aria-current="page"' : ''}>${escapeHtml(each.title)}</a></li>`;
  const lists = sections.map(({ title, groups }) => {
    const parts = groups.map(
      (group) =>
        `${group.title ? `<p>${escapeHtml(group.title)}</p>\n` : ''}<ul>\n${group.pages.map(link).join('\n')}\n</ul>`,
    );
    return `<h2>${escapeHtml(title)}</h2>\n${parts.join('\n')}`;
  });
  // The script closes it on a narrow screen.
  return `<nav class="pages" aria-label="Pages"><details open><summary>All pages</summary>
${lists.join('\n')}
</details></nav>`;
}

function around(label: string, page: Page | undefined, isThere: boolean, to: To): string {
  return page && isThere
    ? `<a href="${to(page.address)}"><span>${label}</span> ${escapeHtml(page.title)}</a>\n`
    : '<span></span>\n';
}

const CONTENTS_MIN = 2;

function contents({ headings }: Rendered): string {
  const shown = listed(headings);
  if (shown.length < CONTENTS_MIN) return '';
  const items = shown.map(
    ({ level, text, anchor }) =>
      `<li class="level-${level}"><a href="#${anchor}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page"><h2>On this page</h2>
<ul>
${items.join('\n')}
</ul></nav>`;
}
