import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { adjustVoucher, cashOut } from '../../src/books/vouchers.ts';
import type { Operator } from '../../src/context.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { Refusal } from '../../src/refusal.ts';
import {
  blockVoucher,
  cancelVoucher,
  extendVoucher,
  replaceVoucher,
  unblockVoucher,
  unlockPin,
} from '../../src/vouchers/operate.ts';
import { asOperator, type ListeningService, produceAll } from './harness.ts';
import type { Answer, Call } from './model.calls.ts';
import { UNKNOWN } from './till.ts';

/** The calls of a run of the model as the operator, or as the worker that produces batches. */

const refused = (code: string): Answer => ({ code, replayed: false, data: null });
const done = (data: unknown): Answer => ({ code: '00', replayed: false, data });

/** @param merchantId the id of the merchant of the call */
export async function operate(
  { service }: ListeningService,
  merchantId: number,
  call: Call,
): Promise<Answer> {
  const { actor } = asOperator(service);
  const operator = { service, actor: { ...actor, reason: 'a test' } };
  const serial = BigInt(('serial' in call ? call.serial : undefined) ?? UNKNOWN.serialNumber);
  try {
    if (call.do === 'block') return done(await blockVoucher(operator, serial));
    if (call.do === 'unblock') return done(await unblockVoucher(operator, serial));
    if (call.do === 'unlock') return done(await unlockPin(operator, serial));
    if (call.do === 'extend') return done(await extendVoucher(operator, serial, new Date(call.until)));
    if (call.do === 'adjust') {
      const wanted = { serialNumber: serial, deltaMinor: BigInt(call.minor), reference: randomUUID() };
      return done(await adjustVoucher(operator, wanted));
    }
    if (call.do === 'cashOut') {
      const wanted = { serialNumber: serial, amountMinor: null, merchantId: null, reference: randomUUID() };
      return done(await cashOut(operator, wanted));
    }
    if (call.do === 'cancelVoucher') return done(await cancelVoucher(operator, serial));
    if (call.do === 'topUp') {
      const { float } = await topUp(operator, {
        merchantId,
        currency: 'USD',
        amountMinor: BigInt(call.minor),
      });
      return done({ minor: Number(float.balance) });
    }
    if (call.do === 'cancel' || call.do === 'produce') {
      // An empty id finds no batch.
      if (call.transactionId === '') return refused('60');
      if (call.do === 'produce') return done({ status: await produced(service, call.transactionId) });
      return done({ status: (await cancelBatch(operator, call.transactionId))?.status });
    }
    return done(await replaced(operator, serial));
  } catch (error) {
    if (error instanceof Refusal) return refused(error.code);
    throw error;
  }
}

type Service = ListeningService['service'];

/** Produces a batch as a worker does. @returns its status */
async function produced(service: Service, transactionId: string): Promise<string | undefined> {
  const text = 'select id, status::text from batches where transaction_id = $1';
  const find = () => service.db.query<{ id: number; status: string }>({ text, values: [transactionId] });
  const [batch] = await find();
  await produceAll(service, batch?.id ?? assert.fail('the batch is missing'));
  return (await find())[0]?.status;
}

/** Replaces a voucher. @returns the new one with its code and PIN */
async function replaced(operator: Operator, serial: bigint) {
  const made = await replaceVoucher(operator, serial);
  const sealed = await sealedOf(operator.service, made);
  return { serial: String(made), serialNumber: Number(made), ...operator.service.keys.open(made, sealed) };
}

async function sealedOf({ db }: Service, serial: bigint): Promise<Buffer> {
  const text = 'select sealed from vouchers where serial_number = $1';
  const [row] = await db.query<{ sealed: Buffer }>({ text, values: [serial] });
  return row?.sealed ?? assert.fail('the voucher is missing');
}
