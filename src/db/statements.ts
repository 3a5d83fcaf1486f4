/**
 * What may hold a semicolon that ends no statement: a comment, a quoted text or name, a body between
 * dollar signs.
 */
const WHOLE = /--[^\n]*|'(?:[^']|'')*'|"[^"]*"|(\$\w*\$)[\s\S]*?\1|;|[^;'"$-]+|./g;

/** The statements of an SQL file, without empty ones. */
export function splitStatements(text: string): string[] {
  const statements: string[] = [];
  let current = '';
  for (const [part] of text.matchAll(WHOLE)) {
    if (part !== ';') {
      if (!part.startsWith('--')) current += part;
      continue;
    }
    statements.push(current.trim());
    current = '';
  }
  return [...statements, current.trim()].filter((statement) => statement !== '');
}
