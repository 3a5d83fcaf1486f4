import { accept, invited } from '../test/support/browser.ts';
import { launchChromium } from '../test/support/chromium.ts';
import { print } from './figures.ts';
import { type Given, numberOf } from './scenario.ts';
import { Stage } from './stage.ts';
import { quantile, sorted } from './statistics.ts';

/**
 * A cashier in a Chromium at the till of the portal, with a scanner and a keyboard: the time from the first
 * digit of a scan to the receipt, and from the key after the amount.
 */

/** Sales before the measurement: they compile the code, and read the pages into memory. */
const WARM_UP = 5;

export async function run(given: Given): Promise<void> {
  const sales = numberOf(given, 'sales');
  const stage = await Stage.open();
  const serve = await stage.serve();
  const { vouchers } = await stage.stock(0, 0, WARM_UP + sales);
  const merchantId = stage.merchantId;
  const invitation = { email: 'cashier@example.com', roles: ['cashier'], merchantId };
  const { token } = await invited(stage.operator.service, invitation);
  const clock = { now: () => new Date(), advance: () => {} };
  const signedIn = await accept({ baseUrl: serve.url, clock }, token, 'portal');
  const browser = await launchChromium();
  const context = await browser.newContext({ baseURL: serve.url });
  const attributes = { domain: '127.0.0.1', path: '/', secure: true, httpOnly: true } as const;
  const { cookies } = signedIn.browser;
  await context.addCookies([...cookies].map(([name, value]) => ({ name, value, ...attributes })));
  const page = await context.newPage();
  await page.goto('/portal/till');
  await page.getByRole('heading', { level: 1, name: 'Till' }).waitFor();
  const took = { 'from the scan': [] as number[], 'from Enter after the amount': [] as number[] };
  for (const [at, { code, pin }] of vouchers.entries()) {
    await page.getByLabel('Code').focus();
    const since = performance.now();
    await page.keyboard.type(code + pin);
    await page.keyboard.press('Enter');
    await page.getByLabel('Amount').waitFor();
    // Each leaves other cents.
    const cents = (at % 99) + 1;
    await page.keyboard.type((cents / 100).toFixed(2));
    const entered = performance.now();
    await page.keyboard.press('Enter');
    const left = String(100 - cents).padStart(2, '0');
    await page
      .getByText(new RegExp(`Remaining balance:.*\\.${left}\\b`))
      .first()
      .waitFor();
    if (at < WARM_UP) continue;
    took['from the scan'].push(performance.now() - since);
    took['from Enter after the amount'].push(performance.now() - entered);
  }
  await browser.close();
  await serve.stop();
  print(`${sales} redemptions, each with one key after the amount`);
  for (const [name, all] of Object.entries(took)) {
    const times = sorted(all);
    const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)].map((each) => each.toFixed(0));
    print(`${name} to the receipt: p50 ${p50}, p95 ${p95} ms`);
  }
}
