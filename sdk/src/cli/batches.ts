import type { Batch, BatchHead, Receipt, Voucher } from '../types.ts';
import { amountOf, CONNECTION, type Command, type Line, timeOf, wholeOf, wrongUsage } from './command.ts';
import { checkTarget, toCsv, writeWhole } from './file.ts';
import { newReference, openSession, type Session } from './session.ts';
import { printFields, printTable, say, showProgress, write } from './terminal.ts';

const OUT = {
  out: { value: 'FILE', summary: 'write the vouchers to a CSV file of mode 600' },
  force: { summary: 'overwrite the file' },
} as const;

export const GENERATE: Command = {
  name: 'generate',
  args: [],
  summary: 'order a batch of vouchers',
  details: `Up to 10 vouchers are in the response. More are produced in the background: --wait waits for them,
and so does --out. The same order under the same reference is the same batch, which is paid for once.`,
  options: {
    quantity: { value: 'N', summary: 'how many vouchers', required: true },
    value: {
      value: 'AMOUNT',
      summary: 'the value of each voucher; in variant b it may be given at activation',
    },
    product: { value: 'CODE', summary: 'variant a: the product (default: DEFAULT)' },
    expiry: { value: 'DATE', summary: 'variant b: the last day of the vouchers (UTC), or a date and time' },
    reference: { value: 'REF', summary: 'your reference (default: a generated one)' },
    wait: { summary: 'wait until all vouchers are produced' },
    ...OUT,
    ...CONNECTION,
  },
  run: generate,
};

export const DOWNLOAD: Command = {
  name: 'download',
  args: ['REFERENCE'],
  summary: 'download the vouchers of a batch',
  details: 'Without --out or --json, as CSV to stdout. A batch of any size takes little memory.',
  options: { wait: { summary: 'wait until all vouchers are produced' }, ...OUT, ...CONNECTION },
  run: download,
};

async function generate(line: Line): Promise<void> {
  const quantity = wholeOf(line, 'quantity') as number;
  const value = amountOf(line, 'value');
  const expiryDate = timeOf(line, 'expiry');
  const productCode = line.text('product');
  const session = await openSession(line);
  const { inA, inB, call } = session;
  if (inA && (value === undefined || expiryDate !== undefined)) {
    wrongUsage(value === undefined ? '--value is missing' : '--expiry needs --variant b');
  }
  if (inB && productCode !== undefined) wrongUsage('--product needs --variant a');
  const out = line.text('out');
  if (out !== undefined) await checkTarget(out, line.has('force'));
  const reference = newReference(line);
  const batch = inA
    ? await inA.generate(
        { productCode: productCode ?? 'DEFAULT', quantity, value: value as number, reference },
        call,
      )
    : await (inB as NonNullable<typeof inB>).generate({ quantity, value, expiryDate, reference }, call);
  if (batch.replayed) say('this order had been made before: it is the same batch');
  await finish(session, line, batch, quantity);
}

/** Waits, writes and prints, according to the options. */
async function finish(session: Session, line: Line, batch: Batch & Receipt, quantity: number): Promise<void> {
  const out = line.text('out');
  const { vouchers, ...head } = batch;
  const isAwaited = batch.status === 'PROCESSING' && (line.has('wait') || out !== undefined);
  if (isAwaited) await wait(session, batch.reference);
  const isReady = batch.status === 'COMPLETED' || isAwaited;
  const shown = { ...head, status: isAwaited ? ('COMPLETED' as const) : batch.status, quantity };
  const all = vouchers ?? session.scrip.downloadVouchers(batch.reference, session.call);
  if (out !== undefined && isReady) {
    const count = await toFile(out, line.has('force'), all, quantity);
    if (line.has('json')) return write(`${JSON.stringify({ ...shown, file: out })}\n`);
    return printFields({ ...fieldsOf(shown), file: `${out} (${count} vouchers)` });
  }
  if (line.has('json')) return isReady ? writeJson(shown, all) : write(`${JSON.stringify(shown)}\n`);
  await printFields(fieldsOf(shown));
  if (vouchers) {
    await write('\n');
    return printTable(
      ['serial number', 'code', 'PIN'],
      vouchers.map(({ serialNumber, code, pin }) => [String(serialNumber), code, pin]),
    );
  }
  if (batch.status === 'CANCELED') return;
  say(
    `${isReady ? '' : 'when it is COMPLETED, '}download it: scrip-client download ${batch.reference} --out FILE`,
  );
}

function fieldsOf({
  reference,
  transactionId,
  status,
  quantity,
  value,
  expiryDate,
}: BatchHead & { quantity?: number }) {
  return {
    reference,
    'transaction id': transactionId,
    status,
    ...(quantity !== undefined && { quantity }),
    value,
    expires: expiryDate,
  };
}

async function wait({ scrip, call }: Session, reference: string): Promise<void> {
  const progress = showProgress('in production');
  try {
    await scrip.waitForBatch(reference, call);
  } finally {
    progress.stop();
  }
}

async function toFile(
  path: string,
  force: boolean,
  vouchers: AsyncIterable<Voucher> | Iterable<Voucher>,
  total?: number,
): Promise<number> {
  const progress = showProgress('downloading', total);
  let count = 0;
  async function* counted() {
    for await (const voucher of vouchers) {
      progress.update(++count);
      yield voucher;
    }
  }
  try {
    await writeWhole(path, toCsv(counted()), force);
  } finally {
    progress.stop();
  }
  return count;
}

/** One document with all vouchers, written as they come. */
async function writeJson(head: object, vouchers: AsyncIterable<Voucher> | Iterable<Voucher>): Promise<void> {
  let before = `${JSON.stringify(head).slice(0, -1)},"vouchers":[`;
  let isFirst = true;
  for await (const voucher of vouchers) {
    await write(`${before}${isFirst ? '' : ','}\n${JSON.stringify(voucher)}`);
    before = '';
    isFirst = false;
  }
  await write(`${before}]}\n`);
}

async function download(line: Line): Promise<void> {
  const [reference = ''] = line.args;
  const session = await openSession(line);
  const out = line.text('out');
  if (out !== undefined) await checkTarget(out, line.has('force'));
  if (line.has('wait')) await wait(session, reference);
  const vouchers = session.scrip.downloadVouchers(reference, session.call);
  if (out !== undefined) {
    const count = await toFile(out, line.has('force'), vouchers);
    if (line.has('json')) return write(`${JSON.stringify({ reference, file: out, quantity: count })}\n`);
    return say(`${count} vouchers written to ${out}`);
  }
  if (line.has('json')) return writeJson({ reference }, vouchers);
  for await (const piece of toCsv(vouchers)) await write(piece);
}
