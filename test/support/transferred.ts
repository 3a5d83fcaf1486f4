import type { Page } from 'playwright-core';

/** What a page has received: bytes as they were sent, with their headers; answer by answer. */
export type Transferred = {
  bytes: number;
  /** The answers, in their order. */
  readonly answers: { readonly url: string; readonly bytes: number }[];
};

/** Counts what a page receives from now on, as its browser reports it. */
export async function countTransferred(page: Page): Promise<Transferred> {
  const session = await page.context().newCDPSession(page);
  const counted: Transferred = { bytes: 0, answers: [] };
  const urls = new Map<string, string>();
  session.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url));
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength: bytes }) => {
    counted.bytes += bytes;
    counted.answers.push({ url: urls.get(requestId) ?? '', bytes });
  });
  await session.send('Network.enable');
  return counted;
}

/** Names the largest answers, for a message. */
export const largest = ({ bytes, answers }: Transferred): string =>
  [
    `${bytes} bytes in ${answers.length} answers`,
    ...[...answers]
      .sort((one, other) => other.bytes - one.bytes)
      .slice(0, 20)
      .map((each) => `${each.bytes} ${new URL(each.url).pathname}`),
  ].join('\n');
