/**
 * Whether an answer is to be compressed by gzip: where the request accepts it (RFC 9110, 12.5.3), by its name or by `*`, and does
 * not like the plain answer better. Without the header it is not.
 */
export function prefersGzip(acceptEncoding: string | undefined): boolean {
  const weights = new Map<string, number>();
  for (const each of (acceptEncoding ?? '').toLowerCase().split(',')) {
    const [, name = '', weight = '1'] = /^\s*([^\s;]+)\s*(?:;\s*q=([^\s]*)\s*)?$/.exec(each) ?? [];
    // What is no weight is no wish for it either.
    weights.set(name === 'x-gzip' ? 'gzip' : name, /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0);
  }
  const gzip = weights.get('gzip') ?? weights.get('*') ?? 0;
  return gzip > 0 && gzip >= (weights.get('identity') ?? 0);
}
