/**
 * Mutants of SQL: small changes of a statement. Stryker does not know SQL: it would only empty the string of
 * a statement, and every test that runs it would fail.
 *
 * A statement is read as a list of words, not as a tree. A mutant changes a word or a condition. If the
 * result is not valid SQL, every test fails at once, which costs little.
 */

/** A change of a text: the part between two positions is replaced. */
export type Edit = {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  readonly mutator: string;
};

type Token = { readonly text: string; readonly start: number; readonly end: number; readonly depth: number };

const TOKEN =
  /--[^\n]*|\$\{[^}]*\}|'(?:[^']|'')*'|"[^"]*"|\$\d+|[A-Za-z_][\w.]*|\d+(?:\.\d+)?|::|<>|<=|>=|\|\||[<>=+\-*/%(),[\]]/g;

/** The words of a statement without comments, each with its depth of parentheses. */
function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let depth = 0;
  for (const { 0: word, index } of text.matchAll(TOKEN)) {
    if (word.startsWith('--')) continue;
    if (word === ')') depth--;
    tokens.push({ text: word, start: index, end: index + word.length, depth });
    if (word === '(') depth++;
  }
  return tokens;
}

/** The replacements of words. */
const SWAPS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '<>': '=',
  '+': '-',
  least: 'greatest',
  greatest: 'least',
  min: 'max',
  max: 'min',
  sum: 'max',
  desc: 'asc',
};

/** The words that end a condition at its depth. */
const ENDS = new Set(
  `
    and or then else end when where on from order group limit returning for join left right full cross union
    set select as , ;`.split(' '),
);

/** The index after the last word of a condition. */
function endOfCondition(tokens: readonly Token[], from: number, ends: ReadonlySet<string> = ENDS): number {
  const depth = tokens[from]?.depth ?? 0;
  let cases = 0;
  for (let at = from; at < tokens.length; at++) {
    const { text, depth: here } = tokens[at] as Token;
    if (here < depth) return at;
    if (here > depth) continue;
    // A CASE belongs to the condition as a whole.
    if (text === 'case') cases++;
    else if (text === 'end' && cases > 0) cases--;
    else if (cases === 0 && ends.has(text) && !(text === 'and' && isBetween(tokens, at))) return at;
  }
  return tokens.length;
}

const WHEN_ENDS: ReadonlySet<string> = new Set(['then']);

/** Replaces each condition of WHERE, ON, AND, OR and WHEN by true or false. */
function* conditions(tokens: readonly Token[]): Generator<Edit> {
  const replace = (from: number, to: number, replacement: string): Edit[] => {
    const [first, last] = [tokens[from], tokens[to - 1]];
    if (!first || !last || to <= from || (to === from + 1 && /^(true|false)$/.test(first.text))) return [];
    return [{ start: first.start, end: last.end, replacement, mutator: `condition ${replacement}` }];
  };
  for (const [at, { text, depth }] of tokens.entries()) {
    const before = tokens[at - 1]?.text;
    if (text === 'when' && before !== 'case' && isSimpleCase(tokens, at)) continue;
    if (text === 'when') {
      if (before === 'case' || !isSimpleCase(tokens, at))
        yield* replace(at + 1, endOfCondition(tokens, at + 1, WHEN_ENDS), 'false');
    } else if (text === 'where' || (text === 'on' && tokens[at + 1]?.text !== 'conflict')) {
      yield* replace(at + 1, endOfCondition(tokens, at + 1), 'true');
    } else if ((text === 'and' && !isBetween(tokens, at)) || text === 'or') {
      const neutral = text === 'and' ? 'true' : 'false';
      yield* replace(at + 1, endOfCondition(tokens, at + 1), neutral);
      // The operand before the first AND or OR is a condition too. At the beginning of a clause it was
      // replaced there.
      const start = startOfCondition(tokens, at, depth);
      if (start !== undefined) yield* replace(start, at, neutral);
    }
  }
}

/**
 * The beginning of the first operand of a chain of ANDs or ORs, if it is in its own parentheses or after
 * WHEN.
 */
function startOfCondition(tokens: readonly Token[], at: number, depth: number): number | undefined {
  for (let back = at - 1; back >= 0; back--) {
    const { text, depth: here } = tokens[back] as Token;
    if (here < depth || (here === depth && text === 'when')) return back + 1;
    if (here === depth && ENDS.has(text)) return undefined;
  }
  return undefined;
}

/** Whether the AND belongs to a BETWEEN. */
function isBetween(tokens: readonly Token[], at: number): boolean {
  const depth = tokens[at]?.depth ?? 0;
  for (let back = at - 1; back >= 0; back--) {
    const { text, depth: here } = tokens[back] as Token;
    if (here < depth) return false;
    if (here === depth && text === 'between') return true;
    if (here === depth && ENDS.has(text)) return false;
  }
  return false;
}

/** Whether a WHEN belongs to a simple CASE, in which a value follows and not a condition. */
function isSimpleCase(tokens: readonly Token[], at: number): boolean {
  const depth = tokens[at]?.depth ?? 0;
  let open = 0;
  for (let back = at - 1; back >= 0; back--) {
    const { text, depth: here } = tokens[back] as Token;
    if (here < depth) return false;
    if (here > depth) continue;
    if (text === 'end') open++;
    else if (text === 'case' && open > 0) open--;
    else if (text === 'case') return tokens[back + 1]?.text !== 'when';
  }
  return false;
}

const NUMBERS = /^\d+$/;

/** Changes of single words and of short phrases. */
function* words(tokens: readonly Token[], text: string): Generator<Edit> {
  const edit = (from: number, to: number, replacement: string, mutator: string): Edit => ({
    start: (tokens[from] as Token).start,
    end: (tokens[to] as Token).end,
    replacement,
    mutator,
  });
  const word = (at: number) => tokens[at]?.text ?? '';
  for (const [at, token] of tokens.entries()) {
    const [before, next] = [word(at - 1), word(at + 1)];
    const binary = /^(?:[\w."']+|\)|\]|\$\{.*|\$\d+)$/.test(before) && !ENDS.has(before);
    const swap = SWAPS[token.text];
    if (swap !== undefined && (/\W/.test(token.text) ? binary : next === '(' || token.text === 'desc'))
      yield edit(at, at, swap, 'word');
    if (token.text === '-' && binary) yield edit(at, at, '+', 'word');
    if (token.text === 'in' && next === '(') yield* shorter(tokens, at);
    if (token.text === '*' && NUMBERS.test(next)) yield edit(at, at, '/', 'word');
    if ((token.text === '/' || token.text === '%') && binary)
      yield edit(at, at, token.text === '/' ? '%' : '/', 'word');
    if (
      NUMBERS.test(token.text) &&
      before !== 'limit' &&
      before !== '[' &&
      !/\d,|,\d/.test(text.slice(token.start - 1, token.end + 1))
    )
      yield edit(at, at, String(Number(token.text) + 1), 'number');
    if (token.text === 'is' && next === 'not') yield edit(at, at + 1, 'is', 'negation');
    else if (token.text === 'is') yield edit(at, at, 'is not', 'negation');
    else if (token.text === 'not' && before !== 'is') yield edit(at, at, '', 'negation');
    if (token.text === 'for' && next === 'update') yield edit(at, at + 1, '', 'lock');
    if (token.text === 'left' && next === 'join') yield edit(at, at + 1, 'join', 'join');
    if (token.text === 'full' && next === 'join') yield edit(at, at + 1, 'left join', 'join');
    if (token.text === 'union' && next === 'all') yield edit(at, at + 1, 'union', 'union');
    if (token.text === 'on' && next === 'conflict' && word(at + 2) === 'do')
      yield edit(at, at + 3, '', 'conflict');
    if (token.text === 'coalesce' && next === '(') yield* fallback(tokens, at, text);
  }
}

/** Replaces each string of a list of values. */
function* shorter(tokens: readonly Token[], at: number): Generator<Edit> {
  for (let index = at + 2; tokens[index]?.text.startsWith("'"); index += 2) {
    const [value, comma] = [tokens[index] as Token, tokens[index + 1]];
    yield { start: value.start, end: value.end, replacement: "'none'", mutator: 'list' };
    if (comma?.text !== ',') return;
  }
}

/** COALESCE without its fallbacks, and without its first argument. */
function* fallback(tokens: readonly Token[], at: number, text: string): Generator<Edit> {
  const depth = (tokens[at]?.depth ?? 0) + 1;
  const close = tokens.findIndex(
    (token, index) => index > at && token.text === ')' && token.depth === depth - 1,
  );
  const comma = tokens.findIndex((token, index) => index > at && token.text === ',' && token.depth === depth);
  if (close < 0 || comma < 0 || comma > close) return;
  const [open, end] = [tokens[at] as Token, tokens[close] as Token];
  const first = text.slice((tokens[at + 2] as Token).start, (tokens[comma] as Token).start);
  const others = text.slice((tokens[comma] as Token).end, end.start);
  yield { start: open.start, end: end.end, replacement: `(${first})`, mutator: 'coalesce' };
  yield { start: open.start, end: end.end, replacement: `coalesce(${others})`, mutator: 'coalesce' };
}

/** Every mutant of a statement, in the order of the text. */
export function mutateStatement(text: string): Edit[] {
  const tokens = tokenize(text);
  const edits = new Map<string, Edit>();
  for (const edit of [...conditions(tokens), ...words(tokens, text)])
    edits.set(`${edit.start} ${edit.end} ${edit.replacement}`, edit);
  return [...edits.values()].sort((one, other) => one.start - other.start || one.end - other.end);
}

/** A part of a source file. */
type Part = { readonly start: number; readonly end: number; readonly text: string };

/** The statements in the template literals of a source file. */
export function statementsIn(source: string): Part[] {
  return [...source.matchAll(/(?:text: |\bsql|\braw\()`([^`]*)`/g)].map((literal) => {
    const text = literal[1] as string;
    const end = literal.index + literal[0].length - 1;
    return { start: end - text.length, end, text };
  });
}

/** Every mutant of the SQL in a source file. */
export function mutateSql(source: string): Edit[] {
  return statementsIn(source).flatMap(({ start, text }) =>
    mutateStatement(text).map((each) => ({ ...each, start: each.start + start, end: each.end + start })),
  );
}
