import { glob } from 'node:fs/promises';
import { basename } from 'node:path';

/**
 * The test files of each mutated source, by the beginning of its path in src/. The longest beginning counts.
 * Only these run for a mutant: nearly all tests reach the code about money, and a survivor runs all of its
 * own.
 */
const SUBJECTS: Readonly<Record<string, string>> = {
  money: 'money.exact money.property',
  refusal: 'refusal status.precedence',
  principal: 'approvals.agreement operator.turns',
  'keyring/ring': 'secrets.ring keyed-hash secrets.canary',
  'keyring/file': 'keyring.file keys.file secrets.ring rotate cli.keyring',
  'keyring/kms': 'keys.kms',
  'keyring/sealed': 'keyring.file keys.kms',
  'keyring/store': 'keyring.file rotate reseal keys.rotate.race cli.keyring',
  rotation: 'rotate reseal keys.rotate.race cli.keyring',
  'http/answer': 'http.answers http.answers.declined status.precedence http.overload',
  'ledger/booking': 'activate.holds redeem.keys redeem.replay daily-limits lookup',
  'ledger/claims': 'claims.hours ledger.id give-up redeem.replay',
  'ledger/holds': 'activate.holds claims.hours give-up',
  'ledger/id': 'ledger.id claims.hours reconcile.plans',
  'ledger/journal': 'kinds sweep.statement activate.statement redeem.statement.vouchers books.entries',
  'ledger/kinds': 'kinds books.entries',
  'ledger/reconcile':
    'reconcile.plans reconcile.differences books.tampering audit.states webhooks.operator settlement.payout',
  'ledger/transactions': 'transactions.statement list.rows list lookup',
  'redemptions/correct': 'approvals.agreement redeem.keys books.refunds approvals.limits',
  'redemptions/give-up': 'give-up',
  'redemptions/redeem': 'redeem.statement redeem redeem.keys redeem.replay pin.guard',
  'redemptions/update': 'update.statement.calls update redeem.race operator.till',
  'vouchers/activate': 'activate activate.holds books.payer',
  'vouchers/balance': 'balance balance.race equal-work pin.guard',
  'vouchers/bulk': 'operator.jobs approvals.limits cli.vouchers',
  'vouchers/declines': 'requests operator.support operator.portal calendar.attacks db.plans',
  'vouchers/find': 'operator.support cli.vouchers operator.sorts vouchers.export db.plans',
  'vouchers/look-up': 'look-up equal-work guessing',
  'vouchers/operate': 'operate vouchers.operate cli.vouchers books.repeat operator.jobs webhooks.operator',
  'vouchers/show': 'operate vouchers.operate operator.support cli.vouchers books.past approvals',
  'vouchers/void': 'books.refunds operator.till',
  'batches/': 'generate batches.release batches.production batches.failures',
  'batches/cancel': 'batches.release batches.release.attacks activate.holds',
  'batches/download': 'batches.download rows.written batches.failures',
  'batches/export': 'batches.export',
  'batches/fill': 'generate batches.background batches.failures rows.written',
  'batches/generate': 'generate batches.background batches.failures',
  'batches/import': 'import.vouchers import.takeover',
  'batches/release': 'batches.release batches.release.attacks',
  'batches/rows': 'rows.written batches.download',
  'batches/sheets': 'sheets',
  'books/': 'books.entries books.export books.repeat books.reports',
  'books/checkpoint': 'books.checkpoint books.publish books.proof.form',
  'books/close': `books.days books.clocks books.set-back books.intervals books.proof books.verify
    books.reports`,
  'books/day-checks': 'books.tampering books.days',
  'books/days': 'books.days books.zone books.intervals books.demo',
  'books/entries': 'books.entries books.export',
  'books/escheat': 'books.escheat books.repeat import.takeover',
  'books/export': 'books.export books.formats books.proof',
  'books/floats': 'books.entries merchants.floats books.repeat float.forecast books.past',
  'books/formats': 'books.formats books.export',
  'books/gl': 'books.export operator.api',
  'books/merkle': 'books.proof.form books.publish settlement.proof',
  'books/once': 'books.repeat merchants.floats',
  'books/own': 'books.opening books.repeat books.escheat',
  'books/pieces': 'books.pieces books.clocks',
  'books/plain-text': 'books.formats books.export',
  'books/proof': 'books.proof.form books.proof settlement.proof',
  'books/publish': 'books.publish books.forgeries',
  'books/redeemed': 'books.redeemed books.entries',
  'books/refunds': 'books.refunds books.redeemed books.network',
  'books/reports/': `books.reports books.export books.past books.never-activated books.entries
    books.property`,
  'books/reports/breakage': 'books.breakage books.reports',
  'books/reports/tax': 'books.tax books.reports',
  'books/rules': 'books.breakage books.tax import.takeover',
  'books/seal': 'books.verify books.clocks books.days books.proof books.set-back',
  'books/settled': 'settlement.payout settlement.proof',
  'books/sweep': 'books.never-activated books.clocks sweep.statement books.taken-back',
  'books/verify': 'books.verify books.tampering books.proof',
  'books/vouchers': 'books.taken-back books.repeat books.refunds',
  'books/wait': 'books.days claims.hours',
  'settlement/': 'settlement settlement.steps settlement.corrections settlement.payout',
  'settlement/document': 'settlement.steps settlement.payout operator.bank',
  'settlement/pain': 'settlement.payout',
  'settlement/payout-file': 'settlement.payout documents.attacks.growth',
  'settlement/proof': 'settlement.proof settlement.forgeries',
  'settlement/terms': 'settlement settlement.steps operator.bank approvals.people',
  'operations/': `approvals.agreement approvals.rights approvals approvals.decisions people.persons.attacks
    approvals.alone.attacks`,
  'operations/admit': 'operator.turns approvals.agreement approvals operator.api approvals.alone.attacks',
  'operations/perform': 'operator.turns approvals.agreement approvals operator.api approvals.alone.attacks',
  'webhooks/': 'webhooks.delivery webhooks.retry webhooks.events webhooks.changes webhooks.operator',
  'webhooks/address': 'webhooks.address webhooks.resolve',
  'webhooks/deliveries': 'webhooks.operator webhooks.prune',
  'webhooks/endpoints': 'webhooks.operator webhooks.changes webhooks.address',
  'webhooks/outbox': 'webhooks.events webhooks.delivery webhooks.full webhooks.changes',
  'webhooks/pull': 'webhooks.pull',
  'webhooks/record': 'webhooks.retry webhooks.delivery webhooks.prune',
  'webhooks/send': 'webhooks.delivery webhooks.resolve webhooks.retry',
};

/** The test files of a source, by their paths in test/. */
export async function subjectsOf(root: string): Promise<(source: string) => readonly string[]> {
  const paths = await Array.fromAsync(glob('**/*.test.ts', { cwd: `${root}/test` }));
  const files = new Map(paths.map((path) => [basename(path, '.test.ts'), path]));
  const lists = Object.entries(SUBJECTS).map(([beginning, names]) => {
    const tests = names.split(/\s+/).map((name) => {
      const path = files.get(name);
      if (path === undefined) throw new Error(`there is no test ${name}.test.ts`);
      return path;
    });
    return [`src/${beginning}`, tests] as const;
  });
  const longestFirst = lists.toSorted(([one], [other]) => other.length - one.length);
  return (source) => longestFirst.find(([beginning]) => source.startsWith(beginning))?.[1] ?? [];
}
