/**
 * Programs in other languages: the requests of the OpenAPI documents, written by
 * HTTPSnippet, the generator of ReadMe. Its wrapper for OpenAPI documents brings 56 more packages, one of
 * which runs a script when it is installed, for what `requestOf` does.
 */
import { type HarRequest, HTTPSnippet } from '@readme/httpsnippet';
import { describedCalls } from './documents.ts';

const BASE_URL = 'https://vouchers.example.com';
const REFERENCE = 'sale-1';
/** Stands in place of the credentials. */
export const CREDENTIALS_PLACE = 'BASE64_OF_KEY_ID_AND_SECRET';

const JSON_TYPE = 'application/json';
const LANGUAGES = [
  { name: 'Python', block: 'python', target: 'python', client: 'requests' },
  { name: 'PHP', block: 'php', target: 'php', client: 'curl' },
] as const;

type Described = ReturnType<typeof describedCalls>[number];

/** A request in the format of the generator (HAR). */
function requestOf({ method, path, body }: Described['calls'][number]): HarRequest {
  const headers = {
    accept: JSON_TYPE,
    ...(body && { 'content-type': JSON_TYPE }),
    authorization: `Basic ${CREDENTIALS_PLACE}`,
  };
  const request: Omit<HarRequest, 'postData'> = {
    method,
    url: `${BASE_URL}${path.replace('{reference}', REFERENCE)}`,
    httpVersion: 'HTTP/1.1',
    cookies: [],
    headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
    queryString: [],
    headersSize: -1,
    bodySize: -1,
  };
  // The generator takes requests without a body; its types do not.
  return {
    ...request,
    ...(body && { postData: { mimeType: JSON_TYPE, text: JSON.stringify(body) } }),
  } as HarRequest;
}

function snippetsOf({ calls }: Described): string[] {
  return calls.flatMap((call) => {
    const snippet = new HTTPSnippet(requestOf(call));
    const blocks = LANGUAGES.flatMap(({ block, target, client }) => {
      const [code] = snippet.convert(target, client) || [];
      if (!code) throw new Error(`the generator made no ${target} of ${call.method} ${call.path}`);
      return [`\`\`\`${block}`, code.trimEnd(), '```', ''];
    });
    return [`### ${call.summary}`, '', `\`${call.method} ${call.path}\``, '', ...blocks];
  });
}

/** The programs for both variants, in Markdown. */
export const snippetsText = (): string =>
  describedCalls()
    .flatMap((described) => [`## ${described.document.info.title}`, '', ...snippetsOf(described)])
    .join('\n');
