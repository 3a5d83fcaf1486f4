import { Worker } from 'node:worker_threads';

/** Logos of cards. A file that somebody gives becomes a plain picture, once; only that picture is drawn. */

/** The largest file of a logo. */
export const LOGO_BYTES_MAX = 256 * 1024;
/** Pictures with more pixels on a side only take time: a logo is printed 15 mm wide. */
const SIDE_MAX = 4_000;
/** A logo takes some milliseconds; a file that takes longer is made to. */
const TIME_MAX_MS = 20_000;

/** Thrown for a file that is no logo, with a sentence that says why. */
export class LogoError extends Error {}

/** What a drawing may consist of: shapes and their colors. Everything else is refused. */
const ELEMENTS = new Set([
  'svg',
  'g',
  'defs',
  'title',
  'desc',
  'metadata',
  'style',
  'path',
  'rect',
  'circle',
  'ellipse',
  'line',
  'polyline',
  'polygon',
  'lineargradient',
  'radialgradient',
  'stop',
  'clippath',
]);
/** Of the programs that draw, which write notes into their files. */
const NOTES = /^(?:sodipodi|inkscape|rdf|cc|dc):/;

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

/**
 * Returns a logo as a PNG that is sharp in print, from a PNG or an SVG. It is read in WebAssembly, on a
 * thread of its own, which fetches nothing, and has some seconds.
 * @throws LogoError
 */
export async function readLogo(file: Uint8Array): Promise<Buffer> {
  if (file.length > LOGO_BYTES_MAX) throw new LogoError(`has more than ${LOGO_BYTES_MAX / 1024} kB`);
  const bytes = Buffer.from(file);
  const drawing = bytes.subarray(0, PNG.length).equals(PNG) ? ofPng(bytes) : ofSvg(bytes);
  const picture = await drawAside(drawing);
  if (!picture) throw new LogoError('cannot be read: it is broken, empty, or too complex');
  return Buffer.from(picture);
}

/** Returns a drawing with a picture in it, so that both are read in one way. */
function ofPng(bytes: Buffer): string {
  const [width, height] = bytes.length < 24 ? [0, 0] : [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  if (width < 1 || height < 1 || width > SIDE_MAX || height > SIDE_MAX)
    throw new LogoError(`must have 1 to ${SIDE_MAX} pixels on each side`);
  const href = `data:image/png;base64,${bytes.toString('base64')}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><image width="${width}" height="${height}" href="${href}"/></svg>`;
}

function ofSvg(bytes: Buffer): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new LogoError('is neither a PNG nor an SVG in UTF-8');
  }
  if (!/<svg[\s>]/.test(text)) throw new LogoError('is neither a PNG nor an SVG in UTF-8');
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text))
    throw new LogoError('has a document type, which a logo may not have');
  for (const [, name = ''] of text.matchAll(/<([A-Za-z_][\w:.-]*)/g))
    if (!ELEMENTS.has(name.toLowerCase()) && !NOTES.test(name))
      throw new LogoError(`has <${name}>, but a logo may only have shapes: convert it to paths`);
  return text;
}

/** @returns undefined if the drawing cannot be read, or in time */
async function drawAside(drawing: string): Promise<Uint8Array | undefined> {
  const worker = new Worker(new URL('./logo.thread.ts', import.meta.url), {
    workerData: drawing,
    execArgv: [],
    env: {},
  });
  const drawn = Promise.withResolvers<Uint8Array | undefined>();
  const timer = setTimeout(() => drawn.resolve(undefined), TIME_MAX_MS);
  worker.on('message', drawn.resolve);
  worker.on('error', () => drawn.resolve(undefined));
  worker.on('exit', () => drawn.resolve(undefined));
  try {
    return await drawn.promise;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
