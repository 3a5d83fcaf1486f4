import { readdir, readFile } from 'node:fs/promises';
import { approvalsText } from '../generate/approvals.ts';
import { auditText } from '../generate/audit.ts';
import { commandsText } from '../generate/commands.ts';
import { eventsText } from '../generate/events.ts';
import { kindsText } from '../generate/kinds.ts';
import { metricsText } from '../generate/metrics.ts';
import { problemsText } from '../generate/problems.ts';
import { reportsText } from '../generate/reports.ts';
import { rightsText } from '../generate/rights.ts';
import { settingsText } from '../generate/settings.ts';
import { snippetsText } from '../generate/snippets.ts';

/** The pages of the site: what the project has in Markdown, and where each stands on the site. */

export const ROOT = new URL('../../', import.meta.url);

/** Pages from outside docs/, with their addresses. */
const OTHERS: Readonly<Record<string, string>> = {
  'SECURITY.md': 'project/security.html',
  'CHANGELOG.md': 'project/changelog.html',
  'CONTRIBUTING.md': 'project/contributing.html',
  'STYLE.md': 'project/style.html',
  'CODE_OF_CONDUCT.md': 'project/conduct.html',
  'sdk/README.md': 'packages/client.html',
  'clients/python/README.md': 'packages/client-python.html',
  'conformance/README.md': 'packages/conformance.html',
  'verifier/README.md': 'packages/verifier.html',
  'embedded/README.md': 'packages/embedded.html',
  'console/README.md': 'packages/console.html',
};
const HOME = 'docs/README.md';

/** What is made from the program and stands in pages, such as `<!-- insert: commands product -->`. */
const INSERTS: Readonly<Record<string, (argument: string) => string | Promise<string>>> = {
  approvals: approvalsText,
  audit: auditText,
  commands: commandsText,
  events: eventsText,
  metrics: metricsText,
  problems: problemsText,
  reports: reportsText,
  rights: rightsText,
  kinds: kindsText,
  settings: settingsText,
  snippets: snippetsText,
};
const INSERT = /^<!-- insert: (\w+) ?(.*?) -->$/;

export type Page = {
  /** Where it is in the project. */
  readonly path: string;
  /** Where it is on the site. */
  readonly address: string;
  readonly title: string;
  readonly text: string;
};

export type Section = {
  readonly title: string;
  readonly groups: readonly { readonly title: string | undefined; readonly pages: readonly Page[] }[];
};

/** Reads all pages, by their paths in the project. */
export async function readPages(): Promise<Map<string, Page>> {
  const names = await readdir(new URL('docs/', ROOT), { recursive: true });
  const guides = names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
  const pages = await Promise.all([...guides, ...Object.keys(OTHERS)].sort().map(readPage));
  return new Map(pages.map((page) => [page.path, page]));
}

async function readPage(path: string): Promise<Page> {
  const written = await readFile(new URL(path, ROOT), 'utf8');
  const lines = written.split('\n').map(async (line) => {
    const [, name, argument = ''] = INSERT.exec(line) ?? [];
    if (name === undefined) return line;
    const make = INSERTS[name];
    if (!make) throw new Error(`${path} inserts ${name}, which nothing makes`);
    return make(argument);
  });
  // Other comments are for the source.
  const text = (await Promise.all(lines)).join('\n').replace(/^<!--[\s\S]*?-->$/gm, '');
  const [, title] = /^# (.+)$/m.exec(text) ?? [];
  if (title === undefined) throw new Error(`${path} has no title: begin it with "# Title"`);
  return { path, address: addressOf(path), title, text };
}

function addressOf(path: string): string {
  if (path === HOME) return 'index.html';
  return OTHERS[path] ?? path.replace(/^docs\//, '').replace(/\.md$/, '.html');
}

/**
 * Reads the navigation from the list of pages in docs/README.md, so that there is one list: a section for
 * each heading, a group for each line that ends in a colon.
 * @throws Error for a page of docs/ that is not in the list
 */
export function readNavigation(pages: ReadonlyMap<string, Page>): Section[] {
  const home = pages.get(HOME);
  if (!home) throw new Error(`${HOME} is missing`);
  const sections: { title: string; groups: { title: string | undefined; pages: Page[] }[] }[] = [];
  for (const line of home.text.split('\n')) {
    const [, heading] = /^## ([^:]+)/.exec(line) ?? [];
    const [, group] = /^(For .+):$/.exec(line) ?? [];
    if (heading) sections.push({ title: heading, groups: [{ title: undefined, pages: [] }] });
    if (group) sections.at(-1)?.groups.push({ title: group, pages: [] });
    for (const [, link = ''] of line.matchAll(/\]\(([^)\s#]+\.md)\)/g)) {
      const page = pages.get(new URL(link, `file:///${HOME}`).pathname.slice(1));
      if (page) sections.at(-1)?.groups.at(-1)?.pages.push(page);
    }
  }
  const listed = new Set(sections.flatMap(({ groups }) => groups.flatMap((group) => group.pages)));
  const missing = [...pages.values()].filter((page) => page !== home && !listed.has(page));
  if (missing.length > 0)
    throw new Error(`${HOME} does not list ${missing.map(({ path }) => path).join(', ')}`);
  return sections.map(({ title, groups }) => ({
    title,
    groups: groups.filter((group) => group.pages.length > 0),
  }));
}
