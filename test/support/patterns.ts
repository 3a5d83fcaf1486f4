/**
 * Finds the regular expressions of a source, and makes texts of any length on which a regular expression
 * that is not linear takes far too long. The texts are made from the expression itself: what comes before a
 * repetition, the repetition many times, and an end that does not match.
 */

/** Comments, texts, and regular expressions: a slash is one only where a value may begin. */
const TOKEN =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|(?<=(?:^|[(,=:[!&|?{};+]|=>|\breturn)\s*)(\/(?![/*])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*)/gm;

/** The pattern of a field in a schema. */
const OF_SCHEMA = /\bpattern: '((?:[^'\\\n]|\\.)*)'/g;

/** Returns the regular expressions of a source, as literals. */
export function patternsIn(source: string): string[] {
  const ofSchemas = [...source.matchAll(OF_SCHEMA)].map(
    ([, pattern = '']) => new RegExp(pattern.replaceAll('\\\\', '\\'), 'u'),
  );
  return [...[...source.matchAll(TOKEN)].flatMap(([, pattern]) => pattern ?? []), ...ofSchemas.map(String)];
}

/** Reads `/source/flags`. */
export function readPattern(pattern: string): RegExp {
  const end = pattern.lastIndexOf('/');
  return new RegExp(pattern.slice(1, end), pattern.slice(end + 1));
}

/** A text of a length, made of a beginning, many repetitions, and an end. */
export type Attack = { readonly name: string; text(length: number): string };

const PART =
  /\(\?<?[=!]|\((?:\?(?::|<\w+>))?|\)|\||\[(?:[^\]\\]|\\.)*\]|\\[pP]\{[^}]*\}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\.|(?:[*+?]|\{\d+(?:,\d*)?\})\??|[\s\S]/giy;
const QUANTIFIER = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??$/;
const UNBOUNDED = /^(?:[*+]|\{\d+,\})\??$/;
/** One of each kind of character that expressions distinguish. */
const CHARACTERS = [...'aZ1 .-_/:;,=+"\'\\@%?#&!<>()[]{}\n\t\0é€'];
const ENDS = ['', '\n\0', 'a1'];
const ALPHABET_MAX = 8;

/** Returns the characters that a part of an expression matches, few of them. */
function samplesOf(part: string, flags: string): string[] {
  let matches: RegExp;
  try {
    matches = new RegExp(`^(?:${part})$`, flags.replace(/[gy]/g, ''));
  } catch {
    return [];
  }
  const literal = part.length === 1 ? [part] : [];
  const found = [...literal, ...CHARACTERS].filter((each) => matches.test(each));
  return [...new Set([found[0], found.at(-1)])].filter((each) => each !== undefined);
}

/** Makes the texts for an expression: none if it has no repetition without an end. */
export function attacksOn({ source, flags }: RegExp): Attack[] {
  const parts = source.match(PART) ?? [];
  const samples = parts.map((part) => (QUANTIFIER.test(part) ? [] : samplesOf(part, flags)));
  const first = (from: number, to: number) =>
    samples
      .slice(from, to)
      .map(([sample = '']) => sample)
      .join('');
  const alphabet = [...new Set(samples.flat())].slice(0, ALPHABET_MAX);
  const pairs = alphabet.flatMap((one) => alphabet.map((other) => (one === other ? one : one + other)));
  const attacks: Attack[] = [];
  for (const [at, part] of parts.entries()) {
    if (!UNBOUNDED.test(part)) continue;
    const start = startOf(parts, at);
    const pumps = new Set([first(start, at), first(start, at + 2), first(0, at + 2), ...pairs]);
    for (const before of new Set(['', 'a', first(0, start)]))
      for (const pump of pumps)
        for (const end of pump === '' ? [] : ENDS)
          attacks.push({
            name: `${JSON.stringify(before)}, ${JSON.stringify(pump)} many times, ${JSON.stringify(end)}`,
            text: (length) => before + pump.repeat(length / pump.length) + end,
          });
  }
  return attacks;
}

/** Returns where the part begins that a quantifier repeats: a single one, or a group. */
function startOf(parts: readonly string[], quantifier: number): number {
  let open = 0;
  for (let at = quantifier - 1; at >= 0; at--) {
    const part = parts[at] ?? '';
    if (part === ')') open++;
    else if (part.startsWith('(')) open--;
    if (open === 0) return at;
  }
  return 0;
}
