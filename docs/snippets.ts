/**
 * Programs in other languages, a page for each variant: the requests of the OpenAPI documents, written by ReadMe's generator
 * HTTPSnippet, as they come. Its wrapper for OpenAPI documents brings 56 packages more, one of which wants to run a script
 * when it is installed, to do what `requestOf` does.
 */
import { type HarRequest, HTTPSnippet } from '@readme/httpsnippet';
import { describedCalls } from '../src/http/documents.ts';

const BASE_URL = 'https://vouchers.example.com';
const REFERENCE = 'sale-1';
/** What stands in the place of the credentials: no example has any that could be taken for some. */
export const CREDENTIALS_PLACE = 'BASE64_OF_KEY_ID_AND_SECRET';

const JSON_TYPE = 'application/json';
const LANGUAGES = [
  { name: 'Python', block: 'python', target: 'python', client: 'requests' },
  { name: 'PHP', block: 'php', target: 'php', client: 'curl' },
] as const;

type Described = ReturnType<typeof describedCalls>[number];

/** A request in the format that the generator reads (HAR). */
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
  // The generator takes requests without a body, which its types do not.
  return { ...request, ...(body && { postData: { mimeType: JSON_TYPE, text: JSON.stringify(body) } }) } as HarRequest;
}

function snippetsOf({ calls }: Described): string[] {
  return calls.flatMap((call) => {
    const snippet = new HTTPSnippet(requestOf(call));
    const blocks = LANGUAGES.flatMap(({ block, target, client }) => {
      const [code] = snippet.convert(target, client) || [];
      if (!code) throw new Error(`the generator made no ${target} of ${call.method} ${call.path}`);
      return [`\`\`\`${block}`, code.trimEnd(), '```', ''];
    });
    return [`## ${call.summary}`, '', `\`${call.method} ${call.path}\``, '', ...blocks];
  });
}

export type Page = { readonly path: string; readonly text: string };

/** The pages by their paths in docs/reference. */
export function snippetPages(): Page[] {
  return describedCalls().map((described) => ({
    path: `${described.name}/snippets.md`,
    text: [
      `# ${described.document.info.title} in ${LANGUAGES.map(({ name }) => name).join(' and ')}`,
      '',
      'Made from [the OpenAPI document](openapi.json) by `@readme/httpsnippet` (`npm run docs:generate`); not written by hand. Python needs',
      '`requests`, PHP its extension `curl`. In the place of the address goes that of your service, and in the place of',
      `\`${CREDENTIALS_PLACE}\` what this prints:`,
      '',
      '```sh',
      `printf '%s' "$KEY_ID:$SECRET" | base64 -w 0`,
      '```',
      '',
      'Each asks once. A till asks again, with the same body, after a time-out, a broken connection, 429 and 503: the reference makes that safe.',
      'What else it has to mind is in [going live](../../guides/going-live.md).',
      '',
      ...snippetsOf(described),
    ]
      .join('\n')
      .trimEnd()
      .concat('\n'),
  }));
}
