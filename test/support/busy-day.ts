import { authenticate } from '../../src/api-keys/authenticate.ts';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { findBatch } from '../../src/batches/export.ts';
import { produce } from '../../src/batches/fill.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { asOperator, produceAll, type TestService } from './harness.ts';
import { type Made, vouchersOf } from './operator.ts';

/** A day of the service: every kind of batch, and every change of a voucher. */
export async function busyDay(testService: TestService): Promise<Context> {
  const { service } = testService;
  const { keyId, secret } = await testService.createMerchant({
    permit: ['update-redemption'],
    float: 100_000_00n,
  });
  const { context } = await authenticate(service, `Basic ${btoa(`${keyId}:${secret}`)}`);
  await testService.createMerchant({ float: 12_34n });
  const later = {
    ...productDefaults('USD', 2),
    activation: 'on-activation',
    code: 'LATER',
    name: 'Later',
  } as const;
  await createProduct(asOperator(service), later);
  await createProduct(asOperator(service), { ...productDefaults('EUR', 2), code: 'EURO', name: 'Euro' });
  await topUp(asOperator(service), {
    merchantId: context.merchant.id,
    currency: 'EUR',
    amountMinor: 100_00n,
    reference: 'euros',
  });
  await generate(context, { reference: 'now', quantity: 5, value: 20 });
  await generate(context, { reference: 'euro', quantity: 2, value: 20, productCode: 'EURO' });
  await generate(context, { reference: 'later', quantity: 3, value: 20, productCode: 'LATER' });
  await generate(context, { reference: 'open', quantity: 3 });
  // In the background.
  await generate(context, { reference: 'large', quantity: 300, value: 1 });
  await generate(context, { reference: 'canceled', quantity: 300, value: 1 });
  await generate(context, { reference: 'waiting', quantity: 11, value: 1 });
  await produceAll(service, (await findBatch(context, 'large')).id);
  // Canceled after some of its vouchers were made.
  const canceled = await findBatch(context, 'canceled');
  await service.db.transaction((tx) => produce(service, tx, canceled, 100));
  await cancelBatch(asOperator(service), canceled.transactionId);

  const [first, second, third] = (await vouchersOf(context, 'now')) as [Made, Made, Made];
  const [fourth, fifth] = (await vouchersOf(context, 'later')) as [Made, Made];
  const [sixth] = (await vouchersOf(context, 'open')) as [Made];
  for (const [index, { code, pin }] of [fourth, sixth].entries()) {
    await activate(context, { voucher: { code, pin }, reference: `activation-${index}` });
  }
  for (const [index, { code, pin }] of [first, second, third, fourth].entries()) {
    await redeem(context, { code, pin, amount: 10, reference: `sale-${index}` });
  }
  await redeem(context, { code: third.code, pin: third.pin, amount: 10 });
  const [euro] = (await vouchersOf(context, 'euro')) as [Made];
  await redeem(context, { code: euro.code, pin: euro.pin, amount: 5, reference: 'sale-in-euro' });
  await updateRedemption(context, { reference: 'sale-0', amountUsed: 7.5 });
  await updateRedemption(context, { reference: 'sale-1', amountUsed: 0 });
  // Active, spent, replaced twice, and inactive.
  await replaceVoucher(asOperator(service), first.serialNumber);
  await replaceVoucher(asOperator(service), third.serialNumber);
  await replaceVoucher(asOperator(service), await replaceVoucher(asOperator(service), second.serialNumber));
  const replaced = await replaceVoucher(asOperator(service), fifth.serialNumber);
  const fresh = (await vouchersOf(context, 'later')).find(
    ({ serialNumber }) => serialNumber === replaced,
  ) as Made;
  await activate(context, { voucher: fresh, reference: 'activation-of-a-replacement' });
  return context;
}
