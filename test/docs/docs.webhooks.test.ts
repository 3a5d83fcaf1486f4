import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { newWebhookSecret } from '../../src/credentials.ts';
import { folderOf } from '../support/folder.ts';
import { whyNot } from '../support/stand-in.ts';

/**
 * Runs the verification programs of docs/how-to/receive-webhooks.md on webhooks that the library of Standard
 * Webhooks has signed.
 */

const page = await readFile(new URL('../../docs/how-to/receive-webhooks.md', import.meta.url), 'utf8');
const blockOf = (language: string, mark: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))]
    .map(([, block = '']) => block)
    .find((block) => block.includes(mark)) ?? assert.fail(`no ${language} that holds ${mark}`);

const BODY =
  '{"type":"voucher.redeemed","timestamp":"2030-01-31T12:00:00.000Z","data":{"note":"Žluť \\u20ac 10 € \'"}}';
const ID = 'msg_0196f0a12b3c7def8123456789abcdef';
const secret = newWebhookSecret();
const other = newWebhookSecret();

type Vector = {
  readonly name: string;
  readonly body: string;
  readonly headers: Record<string, string>;
  readonly ok: boolean;
};

function vector(
  name: string,
  ok: boolean,
  signature: (time: Date) => string,
  ageMs = 0,
  body = BODY,
): Vector {
  const time = new Date(Date.now() - ageMs);
  const timestamp = String(Math.floor(time.getTime() / 1000));
  const headers = { 'webhook-id': ID, 'webhook-timestamp': timestamp, 'webhook-signature': signature(time) };
  return { name, body, headers, ok };
}

const sign = (by: string) => (time: Date) => new Webhook(by).sign(ID, time, BODY);
const vectors = (): Vector[] => [
  vector('a valid one', true, sign(secret)),
  vector('one signed by two secrets', true, (time) => `${sign(other)(time)} ${sign(secret)(time)}`),
  vector('one with a version that is not known', true, (time) => `v2,AAAA v1a,BBBB ${sign(secret)(time)}`),
  vector('another secret', false, sign(other)),
  vector('another version alone', false, (time) => sign(secret)(time).replace('v1,', 'v2,')),
  vector('a signature that is none', false, () => 'v1'),
  vector('no signature', false, () => ''),
  vector('an old timestamp', false, sign(secret), 600_000),
  vector('a timestamp to come', false, sign(secret), -600_000),
  vector('another body', false, sign(secret), 0, `${BODY} `),
];

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  execFile(command, args, { env: { ...process.env, ...env }, cwd }, (error) =>
    resolve(error ? Number(error.code) : 0),
  );
  return promise;
}

type Program = {
  readonly language: string;
  readonly skip: string | false;
  readonly files: Readonly<Record<string, string>>;
  readonly command: readonly [string, ...string[]];
};

const CLIENT = new URL('../../sdk/src/index.ts', import.meta.url).href;
const LIBRARY = import.meta.resolve('standardwebhooks');

const READ_TS = `import { readFileSync } from 'node:fs';
const rawBody = readFileSync('body', 'utf8');
const headers = JSON.parse(readFileSync('headers.json', 'utf8'));
const request = { headers };
const secret = process.env.SCRIP_WEBHOOK_SECRET;
`;

const PROGRAMS: Program[] = [
  {
    language: 'TypeScript, with the client',
    skip: false,
    files: {
      'verify.ts': READ_TS + blockOf('ts', '@scrip/client').replace("'@scrip/client'", `'${CLIENT}'`),
    },
    command: [process.execPath, 'verify.ts'],
  },
  {
    language: 'TypeScript, with the library',
    skip: false,
    files: {
      'verify.ts': READ_TS + blockOf('ts', 'new Webhook').replace("'standardwebhooks'", `'${LIBRARY}'`),
    },
    command: [process.execPath, 'verify.ts'],
  },
  {
    language: 'Python',
    skip: whyNot('python3'),
    files: {
      'verify.py': `${blockOf('python', 'def verify')}
import os
verify(open("body", "rb").read(), json.load(open("headers.json")), os.environ["SCRIP_WEBHOOK_SECRET"])
`,
    },
    command: ['python3', 'verify.py'],
  },
  {
    language: 'PHP',
    skip: whyNot('php'),
    files: {
      'verify.php': `${blockOf('php', 'function verify')}
set_error_handler(function () { fwrite(STDERR, 'warned'); exit(70); });
try {
    verify(file_get_contents('body'), json_decode(file_get_contents('headers.json'), true), getenv('SCRIP_WEBHOOK_SECRET'));
} catch (RuntimeException) {
    exit(1);
}
`,
    },
    command: ['php', 'verify.php'],
  },
  {
    language: 'Go',
    skip: whyNot('go', 'build', 'net/http'),
    files: {
      'go.mod': 'module example.com/verify\n\ngo 1.18\n',
      'hooks/verify.go': blockOf('go', 'func Verify'),
      'main.go': `package main

import (
	"encoding/json"
	"net/http"
	"os"

	"example.com/verify/hooks"
)

func main() {
	body, _ := os.ReadFile("body")
	text, _ := os.ReadFile("headers.json")
	var fields map[string]string
	if json.Unmarshal(text, &fields) != nil {
		os.Exit(70)
	}
	header := http.Header{}
	for name, value := range fields {
		header.Set(name, value)
	}
	if hooks.Verify(body, header, os.Getenv("SCRIP_WEBHOOK_SECRET")) != nil {
		os.Exit(1)
	}
}
`,
    },
    command: ['./verify'],
  },
  {
    language: 'the shell, with openssl',
    skip: whyNot('openssl', 'version') || whyNot('jq'),
    files: {
      'verify.sh': `${blockOf('sh', 'verify()')}
of() { jq -r ".[\\"$1\\"]" headers.json; }
verify body "$(of webhook-id)" "$(of webhook-timestamp)" "$(of webhook-signature)" "$SCRIP_WEBHOOK_SECRET"
`,
    },
    command: ['sh', 'verify.sh'],
  },
];

describe('the webhook verification of the guide', () => {
  for (const { language, skip, files, command } of PROGRAMS) {
    it(`in ${language} accepts a webhook signed with the secret, and refuses every other`, {
      skip,
    }, async (t) => {
      const folder = folderOf(t);
      if ('go.mod' in files) execFileSync('mkdir', [join(folder, 'hooks')]);
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
      const env = {
        SCRIP_WEBHOOK_SECRET: secret,
        GOFLAGS: '-mod=mod',
        GOTOOLCHAIN: 'local',
      };
      if ('go.mod' in files)
        assert.equal(await run('go', ['build', '-o', 'verify', '.'], env, folder), 0, 'it compiles');
      for (const { name, body, headers, ok } of vectors()) {
        await writeFile(join(folder, 'body'), body);
        await writeFile(join(folder, 'headers.json'), JSON.stringify(headers));
        const [program, ...args] = command;
        assert.equal(await run(program, args, env, folder), ok ? 0 : 1, name);
      }
    });
  }
});
