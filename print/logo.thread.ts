import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { initWasm, Resvg } from '@resvg/resvg-wasm';

/** Draws a logo that `logo.ts` has checked. Any error ends the thread, which is the answer. */

/** 600 dots per inch on the largest place of a card. */
const LARGEST = { width: 600, height: 260 } as const;

await initWasm(await readFile(fileURLToPath(import.meta.resolve('@resvg/resvg-wasm/index_bg.wasm'))));
const drawing = workerData as string;
const { width, height } = new Resvg(drawing);
const value = Math.min(LARGEST.width / width, LARGEST.height / height);
const picture = new Resvg(drawing, { fitTo: { mode: 'zoom', value } }).render();
// A broken picture within the drawing is left out without an error.
const isEmpty = picture.pixels.every((part, index) => index % 4 !== 3 || part === 0);
parentPort?.postMessage(isEmpty ? undefined : picture.asPng());
