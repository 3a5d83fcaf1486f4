import { createMerchant } from '../src/api-keys/create-merchant.ts';
import { createKey } from '../src/api-keys/keys.ts';
import { basic, type Voucher } from './requests.ts';
import type { Stage } from './stage.ts';

/**
 * The cases that an attacker could try to tell apart by the time that an answer takes. The cases of a pair
 * get the same answer, or one that must not depend on the difference.
 */

export type Case = {
  readonly name: string;
  /** HTTP status and code that every answer must have. */
  readonly expected: string;
  /** The request as the bytes of the wire, with a number of its own. */
  readonly make: (number: number) => string;
};

export type Subject = {
  readonly name: string;
  /** The number of concurrent clients: more than one if answers are delayed. */
  readonly clients: number;
  readonly cases: readonly Case[];
  /** Names of cases that must not be told apart. */
  readonly pairs: readonly (readonly [string, string])[];
};

const PREFIX = '/merchant-client/v2';
/** Wrong PINs a voucher. Three leave room for one more without a lock. */
const WRONG_EACH = 3;
/** The number of vouchers of the stock that are blocked, and that are locked. */
const ASIDE = 2_000;
/** Enough for thousands of answers in a minute, but not a high load. */
const GUESSERS = 16;
/** With this many calls, the guesses of a run stay below the limit of a key. */
const MANY_CALLS = 10n ** 12n;

function post(authorization: string, path: string, body: string): string {
  return `POST ${PREFIX}${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

const any = <T>(all: readonly T[], number: number) => all[number % all.length] as T;
const wrong = (voucher: Voucher): Voucher => ({
  ...voucher,
  pin: String((Number(voucher.pin) + 1) % 10_000).padStart(4, '0'),
});

/** A merchant without a limit of guesses. Returns its authorization. @param opaque whether it is told less */
export async function guesserOf(stage: Stage, opaque: boolean): Promise<string> {
  const made = await createMerchant(stage.operator, {
    name: opaque ? 'Opaque' : 'Plain',
    permit: [],
    opaque,
    productId: 1,
    float: { currency: 'USD', amountMinor: 1_000_000n },
  });
  // Today and tomorrow, should it become midnight.
  await stage.owner.query(
    'insert into api_key_days (key_id, day, calls) select $1, current_date + n, $2 from generate_series(0, 1) n',
    [made.keyId, MANY_CALLS],
  );
  return basic(made);
}

async function blockAndLock(
  { owner }: Stage,
  blocked: readonly Voucher[],
  locked: readonly Voucher[],
): Promise<void> {
  const serials = (of: readonly Voucher[]) => [of.map(({ serial }) => serial)];
  await owner.query(
    'update vouchers set blocked_at = now() where serial_number = any ($1)',
    serials(blocked),
  );
  await owner.query(
    "update vouchers set wrong_pins = 15, pin_locked_until = 'infinity' where serial_number = any ($1)",
    serials(locked),
  );
  await owner.query('vacuum analyze vouchers');
}

/** The subjects, with vouchers in the states that they need. */
export async function subjectsOf(stage: Stage, vouchers: readonly Voucher[]): Promise<Subject[]> {
  const opaque = await guesserOf(stage, true);
  const plain = await guesserOf(stage, false);
  const blocked = vouchers.slice(0, ASIDE);
  const locked = vouchers.slice(ASIDE, 2 * ASIDE);
  const open = vouchers.slice(2 * ASIDE);
  await blockAndLock(stage, blocked, locked);
  const codes = new Set(vouchers.map(({ code }) => code));
  const unknown = (): Voucher => {
    const code = String(100_000_000_000 + Math.floor(Math.random() * 900_000_000_000));
    return codes.has(code) ? unknown() : { code, pin: '1234', serial: 0n };
  };
  const of = (path: string, more = '', authorization = opaque) => {
    const make = ({ code, pin }: Voucher) =>
      post(authorization, path, `{"code":"${code}","pin":"${pin}"${more}}`);
    return {
      right: (number: number) => make(any(open, number)),
      wrong: (number: number) => make(wrong(any(open, number))),
      blocked: (number: number) => make(wrong(any(blocked, number))),
      locked: (number: number) => make(any(locked, number)),
      lockedWrong: (number: number) => make(wrong(any(locked, number))),
      unknown: () => make(unknown()),
    };
  };
  const guesses = (by: ReturnType<typeof of>): Case[] => [
    { name: 'wrong PIN', expected: '400 14', make: by.wrong },
    { name: 'wrong PIN, blocked voucher', expected: '400 14', make: by.blocked },
    { name: 'unknown code', expected: '400 14', make: by.unknown },
    { name: 'unknown code, once more', expected: '400 14', make: by.unknown },
    { name: 'right PIN, locked', expected: '400 14', make: by.locked },
  ];
  const pairs = [
    ['wrong PIN', 'unknown code'],
    ['wrong PIN', 'wrong PIN, blocked voucher'],
    ['unknown code', 'unknown code, once more'],
    ['unknown code', 'right PIN, locked'],
  ] as const;
  const balance = of('/balance');
  const tooMuch = of('/redeem', ',"amount":100000');
  const ofPlain = of('/redeem', ',"amount":100000', plain);
  const lockedPair = ['right PIN, locked', 'wrong PIN, locked'] as const;
  return [
    {
      name: 'balance',
      clients: GUESSERS,
      cases: [{ name: 'right PIN', expected: '200 00', make: balance.right }, ...guesses(balance)],
      pairs,
    },
    {
      name: 'redeem',
      clients: GUESSERS,
      cases: [
        { name: 'right PIN, too little on it', expected: '400 51', make: tooMuch.right },
        ...guesses(tooMuch),
      ],
      pairs,
    },
    { name: 'activate', clients: GUESSERS, cases: guesses(of('/activate')), pairs },
    {
      name: 'locked',
      clients: 1,
      cases: [
        { name: lockedPair[0], expected: '400 75', make: ofPlain.locked },
        { name: lockedPair[1], expected: '400 75', make: ofPlain.lockedWrong },
      ],
      pairs: [lockedPair],
    },
    await keysOf(stage),
  ];
}

/** Right and wrong API keys, on a look-up that finds nothing. */
async function keysOf(stage: Stage): Promise<Subject> {
  const { operator, merchantId } = stage;
  const make = (authorization: string) => () =>
    `GET ${PREFIX}/transactions/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n\r\n`;
  const known = await createKey(operator, merchantId);
  const revoked = await createKey(operator, merchantId);
  await stage.owner.query('update api_keys set revoked_at = now() where id = $1', [revoked.keyId]);
  const expired = await createKey(operator, merchantId);
  await stage.owner.query("update api_keys set expires_at = now() - interval '1 day' where id = $1", [
    expired.keyId,
  ]);
  const unknown = { keyId: `key_${'x'.repeat(known.keyId.length - 4)}`, secret: known.secret };
  const refused = (name: string, authorization: string): Case => ({
    name,
    expected: '401 01',
    make: make(authorization),
  });
  return {
    name: 'authentication',
    clients: 1,
    cases: [
      { name: 'right secret', expected: '404 60', make: make(basic(known)) },
      refused('wrong secret', basic({ ...known, secret: revoked.secret })),
      refused('unknown key', basic(unknown)),
      refused('unknown key, once more', basic(unknown)),
      refused('revoked key', basic(revoked)),
      refused('expired key', basic(expired)),
    ],
    pairs: [
      ['unknown key', 'wrong secret'],
      ['unknown key', 'revoked key'],
      ['unknown key', 'expired key'],
      ['unknown key', 'unknown key, once more'],
    ],
  };
}

/** Balances with wrong PINs: for each voucher as many as do not lock it. */
export function wrongPins(authorization: string, vouchers: readonly Voucher[]): string[] {
  return Array.from({ length: WRONG_EACH + 1 }, () => vouchers).flatMap((all) =>
    all.map((voucher) => {
      const { code, pin } = wrong(voucher);
      return post(authorization, '/balance', `{"code":"${code}","pin":"${pin}"}`);
    }),
  );
}

/** Resets the wrong PINs of vouchers that are not locked. */
export async function forgetGuesses(stage: Stage): Promise<void> {
  await stage.owner.query('update vouchers set wrong_pins = 0 where wrong_pins between 1 and 4');
}

/** How many samples a case can take between two calls of `forgetGuesses`. */
export const MOST_SAMPLES = WRONG_EACH * ASIDE;
