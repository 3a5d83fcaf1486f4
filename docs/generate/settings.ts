import { SETTINGS } from '../../src/config.ts';

/** The page of settings, from the list that the program reads. */
export function settingsPage(): { path: string; text: string } {
  const sections = Object.values(SETTINGS).map(({ name, fallback, description }) => {
    const standard = fallback === undefined ? 'none' : `\`${fallback}\``;
    return [`## \`${name}\``, '', ...wrap(description), '', `Default: ${standard}.`, ''];
  });
  return { path: 'settings.md', text: [HEAD, ...sections.flat()].join('\n') };
}

const COLUMNS = 110;

const HEAD = `# Settings

Scrip is configured by environment variables. An empty variable counts as not set. If a value is out of
bounds, Scrip does not start; it prints one line that names the setting and never repeats its value. This
page is generated from the program (\`npm run docs:generate\`), and \`scrip --help\` prints the same
list.

The log goes to stderr as JSON, one line per entry; stdout is for what commands print.

Related pages: [operating](../how-to/operate.md), [API keys](../how-to/api-keys.md),
[failover](../how-to/failover.md) for several database servers, and [webhooks](webhooks.md).
`;

function wrap(text: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trim();
    if (line.length > COLUMNS) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}
