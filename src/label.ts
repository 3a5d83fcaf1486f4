/**
 * `blockedAt` → `Blocked`, `merchantId` → `Merchant`: the English label of a field, a word or an operation
 * whose schema has no label of its own.
 */
export function labelOf(name: string): string {
  const words = name
    .replace(/([a-z0-9])(At|On|Id)$/, '$1')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[-_.]/g, ' ')
    .toLowerCase()
    .replace(/ percent$/, ' (%)')
    .replace(/ (days|minutes|ms)$/, ' ($1)');
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return text.replace(/\b(id|pin|pins|url|api|csv|pdf|vat|iban|bic|ok|xml|ndjson|gl)\b/gi, (word) =>
    word === 'pins' ? 'PINs' : word.toUpperCase(),
  );
}
