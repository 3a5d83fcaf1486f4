import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { audit } from '../audit/audit.ts';
import type { Config } from '../config.ts';
import { type Context, inOrder, type Operator, type Service } from '../context.ts';
import type { ServiceClock } from '../db/clock.ts';
import { findEmbedded, makeDataFolder } from '../db/embedded.ts';
import { isLockTimeout, StartError } from '../db/errors.ts';
import { createPartitions } from '../db/partitions.ts';
import { sql } from '../db/sql.ts';
import type { Sandbox, SandboxSet, SandboxVoucher } from '../http/sandbox.ts';
import { bringScheduleForward } from '../jobs/queue.ts';
import { topUp } from '../merchants/floats.ts';
import { writePrivate } from '../private-file.ts';
import { createProduct, productDefaults } from '../products/products.ts';
import { redeem } from '../redemptions/redeem.ts';
import { updateRedemption } from '../redemptions/update.ts';
import { Refusal } from '../refusal.ts';
import { HOUR_MS } from '../time.ts';
import { balance } from '../vouchers/balance.ts';
import { blockVoucher, replaceVoucher, setExpiry } from '../vouchers/operate.ts';
import { contextOf, defaultProduct, keep, makeMerchant, order } from './trial.ts';
import { actor } from './usage.ts';

/** A service for the tests of integrators: known vouchers in every state, in a separate data folder. */

const FILE = 'sandbox.json';
const SUFFIX = '-sandbox';
const FLOAT_MINOR = 100_000_000n;
const CARD = 'SANDBOX-CARD';
const OWN = 'SANDBOX-OWN';
const VALUE = 100;
/** Enough for a redemption of an amount that has an effect. */
const LARGE_VALUE = 10_000;
const WRONG_PINS = 5;

/** Settings that say whether they are those of a sandbox. */
export type SandboxConfig = Config & { readonly isSandbox?: boolean };

/**
 * Returns the settings of a sandbox. It uses only its own database and key ring, and may send webhooks to a
 * developer's machine.
 */
export function sandboxConfig(config: Config): SandboxConfig {
  const { dataDir } = config;
  return {
    ...config,
    // Commands address a sandbox by its folder, and the next start may be in the same shell.
    dataDir: dataDir.endsWith(SUFFIX) ? dataDir : `${dataDir}${SUFFIX}`,
    keys: undefined,
    keysFile: undefined,
    archiveDir: undefined,
    webhookAllowPrivate: true,
    isSandbox: true,
  };
}

const isMarked = (dataDir: string) =>
  access(join(dataDir, FILE)).then(
    () => true,
    () => false,
  );

/**
 * Ensures that no money gets into a sandbox, whose clock and vouchers are everybody's. Its folder may still
 * be set in the shell.
 * @throws StartError if the settings are not those of a sandbox, and the folder is
 */
export async function refuseSandbox({ isSandbox, databaseUrl, dataDir }: SandboxConfig): Promise<void> {
  if (!isSandbox && databaseUrl === undefined && (await isMarked(dataDir)))
    throw new StartError(
      `the data folder ${dataDir} is that of a sandbox: start it with --sandbox, or set SCRIP_DATA_DIR`,
    );
}

/**
 * Ensures that a sandbox does not use a database with real money, and marks its data folder.
 * @throws StartError if a database is configured, or the folder contains one that is not a sandbox
 */
export async function requireSandbox({ databaseUrl, dataDir }: Config): Promise<void> {
  if (databaseUrl !== undefined)
    throw new StartError(
      'a sandbox has a database of its own, and SCRIP_DATABASE_URL is set: start it without that setting',
    );
  if (await isMarked(dataDir)) return;
  if ((await findEmbedded(dataDir)) !== undefined)
    throw new StartError(
      `the data folder ${dataDir} contains a database that is not a sandbox: remove it, or set SCRIP_DATA_DIR`,
    );
  // Before the database exists: if the first start is killed, the folder is still marked as a sandbox.
  await makeDataFolder(dataDir);
  await writePrivate(join(dataDir, FILE), ['{}\n']);
}

type Keys = { readonly own: Key; readonly other: Key };
type Key = { readonly keyId: string; readonly secret: string };

/**
 * Creates the merchants of a new sandbox, and a set of vouchers at every start.
 * @param clock of the service; `ownerUrl` is the address of the account that may advance it
 */
export async function openSandbox(
  service: Service,
  { dataDir, clock, ownerUrl }: { dataDir: string; clock: ServiceClock; ownerUrl: string },
): Promise<Sandbox> {
  const operator = { service, actor: { ...actor(), reason: 'the sandbox' } };
  const file = join(dataDir, FILE);
  const kept = JSON.parse(await readFile(file, 'utf8')) as Partial<Keys>;
  const keys = kept.own && kept.other ? (kept as Keys) : await createMerchants(operator, file);
  let set = await makeSet(operator, keys);
  return {
    set: () => set,
    async renew() {
      set = await makeSet(operator, keys);
    },
    now: service.clock,
    advance: (duration) => advance(service, { clock, ownerUrl, duration }),
  };
}

type Advance = { readonly clock: ServiceClock; readonly ownerUrl: string; readonly duration: string };

/** Advances the clock. A call that fails has not advanced it, so it can be sent again. */
const advance = inOrder(async (service, { clock, ownerUrl, duration }: Advance) => {
  const { db } = service;
  const [row] = await db.query<{ at: Date }>(
    sql`select ${service.clock()}::timestamptz + ${duration}::interval as at`,
  );
  const at = row?.at ?? service.clock();
  // Bookings need the partitions of the new month at once. All other work may follow.
  await createPartitions(db, at, at);
  await clock.advance(ownerUrl, duration);
  await bringScheduleForward(service).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
  });
});

async function createMerchants(operator: Operator, file: string): Promise<Keys> {
  const { currency, decimals } = await defaultProduct(operator.service);
  const [own, other] = [
    await makeMerchant(operator, 'Sandbox'),
    await makeMerchant(operator, 'Another merchant'),
  ];
  for (const { id: merchantId } of [own, other])
    await topUp(operator, { merchantId, currency, amountMinor: FLOAT_MINOR });
  const terms = productDefaults(currency, decimals);
  await createProduct(operator, { ...terms, code: CARD, name: 'Sandbox card', activation: 'on-activation' });
  await createProduct(operator, { ...terms, code: OWN, name: "Another merchant's own", scope: 'issuer' });
  const keys = {
    own: { keyId: own.keyId, secret: own.secret },
    other: { keyId: other.keyId, secret: other.secret },
  };
  await keep(file, keys);
  return keys;
}

type Made = { readonly code: string; readonly pin: string; readonly serialNumber: bigint };

/** Creates vouchers in every state. */
async function makeSet(operator: Operator, { own, other }: Keys): Promise<SandboxSet> {
  const { service } = operator;
  const run = Date.now().toString(36);
  const [context, elsewhere] = await Promise.all([contextOf(service, own), contextOf(service, other)]);
  await ensureFloat(operator, context);
  const [active, redeemed, blocked, expired, replaced, locked, updated] = await order(context, {
    value: VALUE,
    reference: `set-${run}`,
    quantity: 7,
  });
  const [large] = await order(context, { reference: `large-${run}`, quantity: 1, value: LARGE_VALUE });
  const [inactive] = await order(context, {
    value: VALUE,
    reference: `cards-${run}`,
    quantity: 1,
    productCode: CARD,
  });
  const [foreign] = await order(elsewhere, {
    value: VALUE,
    reference: `own-${run}`,
    quantity: 1,
    productCode: OWN,
  });
  const all = { active, large, redeemed, blocked, expired, replaced, locked, updated, inactive, foreign };
  const made = all as Record<keyof typeof all, Made>;
  await redeem(context, { ...made.redeemed, amount: VALUE, reference: `redeemed-${run}` });
  await blockVoucher(operator, made.blocked.serialNumber);
  await expire(operator, made.expired);
  await replaceVoucher(operator, made.replaced.serialNumber);
  await lockPin(elsewhere, made.locked);
  const updatedReference = `updated-${run}`;
  await redeem(context, { ...made.updated, amount: VALUE / 2, reference: updatedReference });
  await updateRedemption(context, { reference: updatedReference, amountUsed: VALUE / 4 });
  const list: readonly [string, Made, string][] = [
    ['ACTIVE', made.active, '00 up to 100.00, 51 above'],
    ['ACTIVE', made.large, '00 up to 10000.00, 51 above'],
    ['INACTIVE', made.inactive, '40; activate it first'],
    ['REDEEMED', made.redeemed, '42'],
    ['BLOCKED', made.blocked, '43'],
    ['EXPIRED', made.expired, '54'],
    ['REPLACED', made.replaced, '44'],
    ['PIN LOCKED', made.locked, '75'],
    ["ANOTHER MERCHANT'S", made.foreign, '47'],
    ['UPDATED', made.updated, '00 up to 75.00'],
    ['WRONG PIN', { ...made.active, pin: otherPin(made.active.pin) }, '55'],
  ];
  return { ...own, updatedReference, vouchers: list.map(shown) };
}

const shown = ([state, voucher, redeemAnswers]: readonly [string, Made, string]): SandboxVoucher => ({
  state,
  code: voucher.code,
  pin: voucher.pin,
  serialNumber: String(voucher.serialNumber),
  redeemAnswers,
});

const otherPin = (pin: string) => String((Number(pin) + 1) % 10_000).padStart(4, '0');

/** Tops the float up, so that orders of integrators cannot exhaust the sandbox. */
async function ensureFloat(operator: Operator, { merchant }: Context): Promise<void> {
  const { currency } = await defaultProduct(operator.service);
  await topUp(operator, { merchantId: merchant.id, currency, amountMinor: FLOAT_MINOR });
}

async function expire(operator: Operator, { serialNumber }: Made): Promise<void> {
  const { db, buckets, clock } = operator.service;
  const now = clock();
  const expiresAt = new Date(now.getTime() - HOUR_MS);
  await db.transaction(async (tx) => {
    await tx.query(setExpiry(buckets.ofSerial(serialNumber), serialNumber, expiresAt, now));
    const subject = `voucher ${serialNumber}`;
    await audit(tx, operator, { action: 'voucher.extend', subject, after: { expiresAt } });
  });
}

async function lockPin(context: Context, { code, pin }: Made): Promise<void> {
  for (let wrong = 0; wrong < WRONG_PINS; wrong++) {
    await balance(context, { code, pin: otherPin(pin) }).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
    });
  }
}
