/** Reads the file of a till: CSV with the columns `reference`, `amount`, `currency` and `time`. */

const COLUMNS = ['reference', 'amount', 'currency', 'time'];

/**
 * Reads the file of a till. The columns may have any order, and others are ignored. `currency` may be left
 * out if there is only one, and `time` always.
 * @param decimals the currencies of the settlements, each with its number of decimals
 * @returns the rows, with amounts in minor units, and what is wrong with the file: sentences
 */
function readTill(text, decimals) {
  const plain = text.replace(/^\u{feff}/u, '');
  // Excel writes and reads such a line, which names the delimiter.
  const [named = '', own] = /^sep=(.)\r?\n/i.exec(plain) ?? [];
  const [head = ''] = plain.slice(named.length).split(/\r?\n/, 1);
  const delimiter = own ?? [';', '\t'].find((each) => head.includes(each)) ?? ',';
  const [header, ...lines] = [...linesOf(plain, delimiter)].slice(named ? 1 : 0);
  const names = (header?.fields ?? []).map((name) => name.trim().toLowerCase());
  const at = Object.fromEntries(COLUMNS.map((name) => [name, names.indexOf(name)]));
  if (at.reference < 0 || at.amount < 0)
    return {
      rows: [],
      findings: ['the file of the till has no header with the columns reference and amount'],
    };
  const twice = COLUMNS.find((name) => names.lastIndexOf(name) > names.indexOf(name));
  if (twice) return { rows: [], findings: [`the file of the till has the column ${twice} twice`] };
  const [only] = decimals.size === 1 ? decimals.keys() : [];
  const findings = [];
  const rows = lines.flatMap(({ line, fields, isOpen }) => {
    if (fields.every((field) => field.trim() === '')) return [];
    const wrong = (sentence) => {
      findings.push(`line ${line}: ${sentence}`);
      return [];
    };
    if (isOpen || fields.length < names.length)
      return wrong(`it is cut off: it has ${fields.length} of ${names.length} columns`);
    const [reference, amount, currency, time] = COLUMNS.map((name) => (fields[at[name]] ?? '').trim());
    const of = currency.toUpperCase() || only;
    if (of === undefined) return wrong('the currency is missing');
    if (!decimals.has(of)) return wrong(`no settlement in ${of} was given`);
    const minor = toMinor(amount, decimals.get(of));
    if (minor === undefined) return wrong(`${amount || 'nothing'} is no amount of ${of}`);
    return [{ line, reference, currency: of, minor, day: /^\d{4}-\d{2}-\d{2}/.exec(time)?.[0] }];
  });
  return { rows, findings };
}

/** @returns an amount in minor units; undefined for a text that is none */
function toMinor(text, decimals) {
  const [, sign, whole, fraction = ''] =
    /^([+-]?)(\d+)(?:[.,](\d+))?$/.exec(text.replace(/[\s\u00a0]/g, '')) ?? [];
  if (whole === undefined || /[1-9]/.test(fraction.slice(decimals))) return undefined;
  const minor = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'));
  return sign === '-' ? -minor : minor;
}

/** Splits CSV (RFC 4180) into lines of fields. `isOpen`: the file ends within a quoted field. */
function* linesOf(text, delimiter) {
  let [line, fields, field, isQuoted, isOpen] = [1, [], '', false, false];
  let begin = 1;
  for (let at = 0; at < text.length; at++) {
    const each = text[at];
    if (each === '\n') line++;
    if (isOpen) {
      if (each !== '"') field += each;
      else if (text[at + 1] === '"') field += text[++at];
      else isOpen = false;
    } else if (each === '"' && field === '' && !isQuoted) isOpen = isQuoted = true;
    else if (each === delimiter) {
      fields.push(field);
      [field, isQuoted] = ['', false];
    } else if (each === '\n') {
      yield { line: begin, fields: [...fields, field.replace(/\r$/, '')], isOpen };
      [fields, field, isQuoted, begin] = [[], '', false, line];
    } else field += each;
  }
  if (field !== '' || fields.length > 0) yield { line: begin, fields: [...fields, field], isOpen };
}

if (typeof module === 'object') module.exports = { readTill };
