import { randomInt } from 'node:crypto';

/** Random codes, which differ between tests. */
export function codesOf(count: number): string[] {
  const first = randomInt(100_000, 900_000) * 1_000_000;
  return Array.from({ length: count }, (_, index) => String(first + index));
}

/** A file of vouchers over 10.00 each. */
export function csvOf(codes: readonly string[]): string {
  const rows = codes.map(
    (code, index) => `${code},${String(index % 10_000).padStart(4, '0')},10.00,2035-06-30,card-${index}`,
  );
  return `code,pin,balance,expiry,reference\r\n${rows.join('\r\n')}\r\n`;
}
