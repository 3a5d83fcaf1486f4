import {
  BarcodeFormat,
  BinaryBitmap,
  DecodeHintType,
  GlobalHistogramBinarizer,
  MultiFormatReader,
  NotFoundException,
  RGBLuminanceSource,
} from '@zxing/library';
import { extractText, getDocumentProxy, getResolvedPDFJS } from 'unpdf';

/** Reads a printed sheet: its text, and its symbols with a scanner. */

type Matrix = readonly [number, number, number, number, number, number];
type Box = { readonly x0: number; readonly y0: number; readonly x1: number; readonly y1: number };
type Page = Awaited<ReturnType<Awaited<ReturnType<typeof getDocumentProxy>>['getPage']>>;

export type ReadPage = {
  readonly text: string;
  readonly qr: string[];
  readonly bars: string[];
  /** The number of symbols of other kinds, such as GS1 DataBar, which this scanner does not know. */
  readonly others: number;
};

/** Dots per point: coarser than any printer. */
const DOTS = 4;

/** @param password of a sealed sheet */
export async function readSheet(bytes: Buffer, password?: string): Promise<ReadPage[]> {
  const document = await getDocumentProxy(new Uint8Array(bytes), password === undefined ? {} : { password });
  const { text } = await extractText(document, { mergePages: false });
  const pages: ReadPage[] = [];
  for (let number = 1; number <= document.numPages; number++) {
    const areas = await readAreas(await document.getPage(number));
    const symbols = areas.map(scan).filter((each) => each !== undefined);
    const of = (format: BarcodeFormat) =>
      symbols.filter((each) => each.getBarcodeFormat() === format).map((each) => each.getText());
    pages.push({
      text: text[number - 1] ?? '',
      qr: of(BarcodeFormat.QR_CODE),
      bars: of(BarcodeFormat.CODE_128),
      others: areas.length - symbols.length,
    });
  }
  return pages;
}

/** What a reader of an encrypted document may do: the bits of the PDF standard. Null if it may do all. */
export async function readPermissions(bytes: Buffer, password: string): Promise<number[] | null> {
  return (await getDocumentProxy(new Uint8Array(bytes), { password })).getPermissions();
}

/** The filled paths of a page, each as its rectangles, in points. */
async function readAreas(page: Page): Promise<Box[][]> {
  const { OPS } = await getResolvedPDFJS();
  const { fnArray, argsArray } = await page.getOperatorList();
  const stack: Matrix[] = [];
  let matrix: Matrix = [1, 0, 0, 1, 0, 0];
  const areas: Box[][] = [];
  for (const [index, operation] of fnArray.entries()) {
    const args = argsArray[index];
    if (operation === OPS.save) stack.push(matrix);
    else if (operation === OPS.restore) matrix = stack.pop() ?? matrix;
    else if (operation === OPS.transform) matrix = times(matrix, args as Matrix);
    else if (operation === OPS.constructPath && args[0] === OPS.fill)
      areas.push(boxesOf(Object.values(args[1][0] as Record<string, number>), matrix));
  }
  return areas;
}

/** A path is a list of numbers: 0 x y begins a figure, 1 x y draws a line, 4 closes it. */
function boxesOf(path: readonly number[], matrix: Matrix): Box[] {
  const boxes: Box[] = [];
  let corners: [number, number][] = [];
  for (let at = 0; at < path.length; ) {
    const operation = path[at];
    if (operation === 4) {
      at++;
      const xs = corners.map(([x]) => x);
      const ys = corners.map(([, y]) => y);
      boxes.push({ x0: Math.min(...xs), y0: Math.min(...ys), x1: Math.max(...xs), y1: Math.max(...ys) });
      continue;
    }
    if (operation === 0) corners = [];
    else if (operation !== 1) throw new Error('a filled figure is not a rectangle');
    const [x = 0, y = 0] = path.slice(at + 1, at + 3);
    corners.push([matrix[0] * x + matrix[2] * y + matrix[4], matrix[1] * x + matrix[3] * y + matrix[5]]);
    at += 3;
  }
  return boxes;
}

function times([a, b, c, d, e, f]: Matrix, [p, q, r, s, t, u]: Matrix): Matrix {
  return [a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s, a * t + c * u + e, b * t + d * u + f];
}

/** Draws a path on white paper, dot by dot, and scans it. @returns undefined for an unknown symbol */
function scan(boxes: readonly Box[]) {
  const edge = 12;
  const left = Math.min(...boxes.map(({ x0 }) => x0)) - edge;
  const low = Math.min(...boxes.map(({ y0 }) => y0)) - edge;
  const high = Math.max(...boxes.map(({ y1 }) => y1)) + edge;
  const width = Math.ceil((Math.max(...boxes.map(({ x1 }) => x1)) + edge - left) * DOTS);
  const height = Math.ceil((high - low) * DOTS);
  const paper = new Uint8ClampedArray(width * height).fill(255);
  // A page's y goes up, and a picture's rows go down.
  for (const { x0, y0, x1, y1 } of boxes) {
    const [from, to] = [Math.round((x0 - left) * DOTS), Math.round((x1 - left) * DOTS)];
    for (let row = Math.round((high - y1) * DOTS); row < Math.round((high - y0) * DOTS); row++)
      paper.fill(0, row * width + from, row * width + to);
  }
  const hints = new Map<DecodeHintType, unknown>([
    [DecodeHintType.POSSIBLE_FORMATS, [BarcodeFormat.QR_CODE, BarcodeFormat.CODE_128]],
    // Nothing but the symbol is on the paper. (The search for one in a photograph misses some sound QR
    // codes of this size.)
    [DecodeHintType.PURE_BARCODE, true],
  ]);
  const source = new RGBLuminanceSource(paper, width, height);
  try {
    return new MultiFormatReader().decode(new BinaryBitmap(new GlobalHistogramBinarizer(source)), hints);
  } catch (error) {
    if (error instanceof NotFoundException) return undefined;
    throw error;
  }
}
