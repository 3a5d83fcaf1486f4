import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Secrets in the history of the repository: what was ever committed, not only what is there now. */

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** The forms of secrets: those of Scrip itself, and those that other services give out. */
const FORMS: Readonly<Record<string, RegExp>> = {
  'a private key': /-----BEGIN [A-Z ]*PRIVATE KEY-----\\?n?[A-Za-z0-9+/]{40}/,
  'a key ring': /\bkt?[a-z0-9]{10,15}:[A-Za-z0-9_-]{43}\b/,
  'an API key with its secret': /\bkey_[A-Za-z0-9]{16}:[A-Za-z0-9_-]{43}\b/,
  'a token of an operator': /\bscrop_[A-Za-z0-9_-]{40,}/,
  'a webhook secret': /\bwhsec_[A-Za-z0-9+/]{32,}=*/,
  'the password of a database': /\bpostgres(?:ql)?:\/\/\w+:(?!password@)[^@/\s$…{}*"'<>`]{8,}@/,
  'a key of AWS': /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  'a token of GitHub': /\bgh[pousr]_[A-Za-z0-9]{36}\b/,
  'a token of npm': /\bnpm_[A-Za-z0-9]{36}\b/,
  'a token of Slack': /\bxox[abprs]-[A-Za-z0-9-]{10,}/,
  'a key of Google': /\bAIza[0-9A-Za-z_-]{35}\b/,
  'a key of Stripe': /\b[rs]k_live_[A-Za-z0-9]{16,}/,
};

/** In examples and tests on purpose: those of the standard of webhooks, of AWS's documents, and our own. */
const KNOWN: readonly string[] = [
  'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  'whsec_bmV2ZXIgaW4geW91ciBzb3VyY2UgY29kZSE=',
  'AKIAIOSFODNN7EXAMPLE',
  'postgres://scrip:hunter2hunter2@',
];

/** Generated, and full of digests. */
const LEFT_OUT = [':!*package-lock.json', ':!*.svg', ':!*.jsonl'];

/** The secret that a line seems to hold; undefined if there is none. */
export function findSecret(line: string): string | undefined {
  return Object.keys(FORMS).find((what) => {
    const [found] = FORMS[what]?.exec(line) ?? [];
    return found !== undefined && !KNOWN.some((each) => found.startsWith(each));
  });
}

/**
 * Reads every line that was ever added, on any branch.
 * @returns a line for each: the commit, the file and what it looks like, never the secret
 */
export async function findSecrets(): Promise<string[]> {
  const args = ['log', '--all', '-p', '-U0', '--no-color', '--format=commit %h', '--', '.', ...LEFT_OUT];
  const git = spawn('git', args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const found: string[] = [];
  let commit = '';
  let file = '';
  for await (const line of createInterface({ input: git.stdout })) {
    if (line.startsWith('commit ')) commit = line.slice('commit '.length);
    else if (line.startsWith('+++ ')) file = line.slice('+++ b/'.length);
    else if (line.startsWith('+')) {
      const what = findSecret(line);
      if (what) found.push(`${commit} ${file}: ${what}`);
    }
  }
  return found;
}
