import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escheatUnclaimed } from '../../src/books/escheat.ts';
import { correctTopUp, getTopUp, refundFloat } from '../../src/books/floats.ts';
import type { Booked } from '../../src/books/once.ts';
import { transferOwn } from '../../src/books/own.ts';
import { sweepExpired } from '../../src/books/sweep.ts';
import { adjustVoucher, cashOut, escheatVoucher } from '../../src/books/vouchers.ts';
import type { Operator } from '../../src/context.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { correctRedemption, getRedemption } from '../../src/redemptions/correct.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { pay, returned } from '../../src/settlement/pay.ts';
import { DAY_MS, isoDay } from '../../src/time.ts';
import { extendVoucher } from '../../src/vouchers/operate.ts';
import { type Ledger, openLedger, product, proveSound, sell, spend } from '../support/books.ts';
import { fileOf } from '../support/folder.ts';
import { runScrip } from '../support/scrip.ts';
import { close, terms } from '../support/settlements.ts';

/** Every movement of the operator is booked once under its reference, however often it is sent. */

const USD = { currency: 'USD', decimals: 2 } as const;

type Case = {
  readonly what: string;
  /** Books it with its name as reference. `differs`: a different movement under the same reference. */
  readonly book: (differs: boolean) => Promise<Pick<Booked, 'transactionId' | 'replayed'>>;
  /** The same movement as a command; with `--reference` only if that is not its name. */
  readonly typed: readonly string[];
  /** The code that refuses a different movement under the same reference. */
  readonly refused?: string;
};

type Scene = {
  readonly ledger: Ledger;
  readonly shop: number;
  readonly serials: readonly bigint[];
  readonly short: readonly bigint[];
  /** A file with the serial number of the second of these. */
  readonly file: string;
  readonly topUpId: string;
  readonly redemptionId: string;
  readonly settlementId: number;
};

/** A time zone in which it is about noon, so that no day ends while the test runs. */
function zoneOfNoon(now: Date): string {
  const hours = 12 - now.getUTCHours();
  if (hours === 0) return 'UTC';
  return `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}`;
}

/** Four days up to now, by the clock of commands, after which every kind of movement is possible. */
async function openScene(t: Parameters<typeof openLedger>[0]): Promise<Scene> {
  const now = Date.now();
  const ledger = await openLedger(t, new Date(now - 4 * DAY_MS).toISOString());
  await ledger.sql(`update scrip.books set zone = '${zoneOfNoon(new Date(now))}'`);
  const { operator } = ledger;
  const shop = await ledger.merchant(1_000_000n);
  const merchantId = shop.merchant.id;
  const from = isoDay(now - 4 * DAY_MS);
  await terms(operator, merchantId, { from });
  await product(operator, 'SHORT', 'unclaimed');
  await product(operator, 'LOST', 'operator');
  const cards = await sell(shop, 8, 100);
  const short = [...(await sell(shop, 2, 50, { productCode: 'SHORT' }))];
  await sell(shop, 1, 50, { productCode: 'LOST' });
  const [paid, corrected] = cards;
  assert.ok(paid && corrected);
  await spend(shop, paid, 80, 'sale 1');
  const { transactionId: redemptionId } = await spend(shop, corrected, 40, 'sale 2');
  const wrong = { merchantId, currency: 'USD', amountMinor: 7_700n, reference: 'wrong' };
  const { transactionId: topUpId } = await topUp(operator, wrong);
  await ledger.at(new Date(now));
  await close(ledger);
  const [draft] = await draftSettlements(operator, { merchantId });
  await approve(operator, draft?.id ?? 0);
  const serials = cards.map(({ serial }) => serial);
  const settlementId = Number(draft?.id);
  return {
    ...{ ledger, shop: merchantId, serials, short: short.map(({ serial }) => serial) },
    ...{ topUpId, redemptionId, settlementId },
    file: await fileOf(t, 'serials.txt', `${short[1]?.serial}\n`),
  };
}

/** The movements of floats and of vouchers. */
function casesOfMerchants(operator: Operator, scene: Scene): Case[] {
  const { shop, serials, topUpId } = scene;
  const [, , third = 0n, fourth = 0n, fifth = 0n] = serials;
  const more = (differs: boolean, minor: bigint) => (differs ? minor + 1n : minor);
  const ofShop = { merchantId: shop, ...USD };
  return [
    {
      what: 'top-up',
      book: (differs) =>
        topUp(operator, { ...ofShop, amountMinor: more(differs, 500n), reference: 'top-up' }),
      typed: ['float', 'top-up', '--merchant', String(shop), '--amount', '5'],
    },
    {
      what: 'refund',
      book: (differs) =>
        refundFloat(operator, { ...ofShop, amountMinor: more(differs, 300n), reference: 'refund' }),
      typed: ['float', 'refund', '--merchant', String(shop), '--amount', '3'],
    },
    {
      what: 'correct',
      book: async (differs) => {
        const wrong = await getTopUp(operator, topUpId);
        const amountMinor = more(differs, 7_000n);
        return correctTopUp(operator, { topUp: wrong, amountMinor, reference: 'correct' });
      },
      typed: ['float', 'correct', topUpId, '--amount', '70'],
    },
    {
      what: 'adjust',
      book: (differs) => {
        const deltaMinor = more(differs, 250n);
        return adjustVoucher(operator, { serialNumber: third, deltaMinor, reference: 'adjust' });
      },
      typed: ['voucher', 'adjust', String(third), '--amount', '2.50', '--reason', 'a test'],
    },
    {
      what: 'cash-out',
      book: (differs) => {
        const wanted = { serialNumber: fourth, amountMinor: null, reference: 'cash-out' };
        return cashOut(operator, { ...wanted, merchantId: differs ? null : shop });
      },
      typed: ['voucher', 'cash-out', String(fourth), '--merchant', String(shop)],
      // Without a merchant the reference is the operator's own, and nothing is left to pay out.
      refused: '42',
    },
    {
      what: 'cash-out of a part',
      book: (differs) => {
        const paid = { serialNumber: third, amountMinor: more(differs, 100n), merchantId: shop };
        return cashOut(operator, { ...paid, reference: 'cash-out of a part' });
      },
      typed: ['voucher', 'cash-out', String(third), '--merchant', String(shop), '--amount', '1'],
    },
    {
      what: 'escheat a voucher',
      book: (differs) => {
        const serialNumber = differs ? third : fifth;
        return escheatVoucher(operator, { serialNumber, reference: 'escheat a voucher' });
      },
      typed: ['voucher', 'escheat', String(fifth)],
    },
  ];
}

/** The operator's own movements, and those of settlements. */
function casesOfOperator(operator: Operator, scene: Scene): Case[] {
  const { settlementId, redemptionId } = scene;
  const bank = { bankReference: 'B 1', valueDate: '2026-01-02' };
  const more = (differs: boolean, minor: bigint) => (differs ? minor + 1n : minor);
  const settled = (reference: string, differs: boolean) => {
    const wanted = { settlementId, reference, ...bank };
    return { ...wanted, ...(differs && { bankReference: 'B 2' }) };
  };
  const typedBank = ['--bank-reference', bank.bankReference, '--value-date', bank.valueDate];
  return [
    {
      what: 'escheat',
      book: (differs) => {
        const of = { serialNumbers: [scene.short[1] ?? 0n] };
        const amountMinor = more(differs, 5_000n);
        return escheatUnclaimed(operator, { ...USD, of, amountMinor, reference: 'escheat' });
      },
      typed: ['books', 'escheat', '--serials', scene.file, '--amount', '50'],
    },
    ...(['fees', 'vat', 'breakage', 'goodwill'] as const).map((account) => ({
      what: `transfer ${account}`,
      book: (differs: boolean) => {
        const amountMinor = more(differs, 10n);
        return transferOwn(operator, { ...USD, account, amountMinor, reference: `transfer ${account}` });
      },
      typed: ['books', 'transfer', account, '--amount', '0.10'],
    })),
    {
      what: 'pay',
      book: (differs) => pay(operator, settled('pay', differs)),
      typed: ['settlement', 'pay', String(settlementId), ...typedBank],
    },
    {
      what: 'return',
      book: (differs) => returned(operator, settled('return', differs)),
      typed: ['settlement', 'returned', String(settlementId), ...typedBank],
    },
    {
      what: 'correct a redemption',
      book: async (differs) =>
        correctRedemption(operator, await getRedemption(operator, redemptionId), more(differs, 3_000n)),
      typed: ['redemption', 'correct', redemptionId, '--amount', '30', '--reason', 'a test'],
      refused: '58',
    },
  ];
}

/** A correction returns its rows. */
type Answer = { transactionId: string; replayed?: boolean; reversal?: { transactionId: string } };

/** Runs a movement as a command. */
async function type({ started }: Ledger, { what, typed, refused }: Case): Promise<Answer> {
  const settings = {
    SCRIP_DATABASE_URL: started.url,
    SCRIP_KEYS: started.keys,
    SCRIP_LOG_LEVEL: 'error',
  };
  const named = refused === '58' ? [] : ['--reference', what];
  const { status, out, err } = await runScrip(settings, ...typed, ...named, '--json');
  assert.equal(status, 0, `${what}: ${err}`);
  return JSON.parse(out) as Answer;
}

const rowsOf = async ({ sql }: Ledger) => {
  const [row] = await sql<{ rows: bigint }>('select count(*) as rows from scrip.journal');
  return Number(row?.rows);
};

test('a movement is booked once under its reference, by the function and by the command', async (t) => {
  const scene = await openScene(t);
  const { ledger, short } = scene;
  const { service } = ledger.started;
  const { operator } = ledger;
  const because = { ...operator, actor: { ...operator.actor, reason: 'a test' } };
  for (const each of [...casesOfMerchants(because, scene), ...casesOfOperator(because, scene)]) {
    await ledger.at(new Date());
    const first = await each.book(false);
    assert.equal(first.replayed, false, each.what);
    const rows = await rowsOf(ledger);
    const again = await each.book(false);
    assert.deepEqual([again.transactionId, again.replayed], [first.transactionId, true], each.what);
    const typed = await type(ledger, each);
    assert.deepEqual(
      [typed.reversal?.transactionId ?? typed.transactionId, typed.replayed ?? true],
      [first.transactionId, true],
      each.what,
    );
    await assert.rejects(each.book(true), { code: each.refused ?? '94' }, each.what);
    assert.equal(await rowsOf(ledger), rows, each.what);
  }
  // A change without a reference is made once by its nature.
  await ledger.at(new Date());
  const [expired = 0n] = short;
  const until = new Date(Date.now() + 30 * DAY_MS);
  await extendVoucher(operator, expired, until);
  const rows = await rowsOf(ledger);
  await assert.rejects(extendVoucher(operator, expired, until), { code: '17' });
  assert.equal(await sweepExpired(service), 0);
  assert.deepEqual(await close(ledger), []);
  assert.equal(await rowsOf(ledger), rows);
  const kinds = await ledger.sql<{ kind: string }>(
    'select distinct kind::text from scrip.journal order by 1',
  );
  assert.deepEqual(
    kinds.map(({ kind }) => kind),
    [
      ...['ACTIVATION', 'ADJUSTMENT', 'CASH_OUT', 'ESCHEAT', 'EXPIRY', 'FEE', 'FEE_VAT', 'FLOAT_CORRECTION'],
      ...['FLOAT_REFUND', 'OWN_TRANSFER', 'PAYOUT', 'PAYOUT_RETURN', 'REDEMPTION', 'REDEMPTION_REVERSAL'],
      ...['REINSTATEMENT', 'RESERVATION', 'TOP_UP'],
    ],
  );
  await proveSound(service);
});
