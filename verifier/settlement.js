/**
 * Verifies proofs of settlements, and compares them with the file of a till (docs/reference/proof.md). Like
 * `verify.js`, it needs nothing but JavaScript, and shares no code with the service.
 */

const { Refused, Tree, Verifier, hexOf, leafOf, refuse } = require('./verify.js');
const { compare, openCheckpoint } = require('./checkpoint.js');
const { readTill } = require('./till.js');

const VERSION = 2;
/** The kinds of rows that a till makes. The others are the operator's: commission, payouts. */
const OF_TILLS = ['REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND', 'CASH_OUT'];

const dayOf = (closing) => JSON.parse(closing)[2];
const decimalsOf = ({ closing }) => closing.split('.')[1]?.length ?? 0;

function minorOf(amount) {
  if (!/^-?\d+(\.\d+)?$/.test(amount)) refuse(`${amount} is no amount`);
  return BigInt(amount.replace('.', ''));
}

function textOf(minor, decimals) {
  const digits = String(minor < 0n ? -minor : minor).padStart(decimals + 1, '0');
  const at = digits.length - decimals;
  return `${minor < 0n ? '-' : ''}${digits.slice(0, at)}${decimals > 0 ? '.' : ''}${digits.slice(at)}`;
}

/**
 * Verifies the proof of a settlement: its rows are in the trees of its days, add up to its figures and have
 * its root; its days are in the checkpoint.
 * @param key the public key of the installation, `name+id+key`; undefined: no signature is verified
 * @param published the published checkpoint and closings, with which the days are compared
 * @throws Refused
 */
async function verifySettlement(text, { key, published } = {}) {
  let name = 'the file';
  try {
    const file = parse(text);
    name = `settlement ${file.settlement.number}`;
    const { settlement, account, proof, checkpoint, payments } = file;
    requireAmounts(settlement, payments);
    const verifier = new Verifier();
    for (const line of proof) verifier.line(line);
    verifier.end();
    const { closings } = verifier;
    if (dayOf(closings[0]) !== settlement.firstDay || dayOf(closings.at(-1)) !== settlement.lastDay)
      refuse(
        `its days are ${settlement.firstDay} to ${settlement.lastDay}, and those of its proof are others`,
      );
    if (hexOf(leafOf(closings.at(-1))) !== settlement.closingHash)
      refuse(`it states another closing of ${settlement.lastDay} than its proof has`);
    const rows = rowsOf(proof, { account, settlement });
    const origin = await verifyCheckpoint(checkpoint, closings, key);
    if (published) await compare(closings, published, key);
    return { name, settlement, rows, closings, origin, paid: paidBy(settlement, payments) };
  } catch (error) {
    const reason = error instanceof Refused ? error.message : `it is damaged: ${error.message}`;
    throw new Refused(`${name}: ${reason}`);
  }
}

function parse(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    refuse('it is cut off, or is no JSON');
  }
  if (file?.settlementProof === undefined) refuse('it is no proof of a settlement');
  if (file.settlementProof !== VERSION)
    refuse(`it has version ${file.settlementProof}, and this program verifies version ${VERSION}`);
  return file;
}

/** Requires that all amounts have as many decimals: a point in another place makes them larger or smaller. */
function requireAmounts({ carried, closing, outstanding, payable }, payments) {
  const paid = payments.flatMap(({ amount, entries }) => [amount, ...entries.map((each) => each.amount)]);
  for (const amount of [carried, closing, outstanding, payable, ...paid])
    if (textOf(minorOf(amount), decimalsOf({ closing })) !== amount)
      refuse(`${amount} is not written like ${closing}`);
}

/** Returns the rows of a proof. Their amounts are positive if they increase what the merchant is owed. */
function rowsOf(proof, { account, settlement }) {
  const tree = new Tree();
  let sum = minorOf(settlement.carried);
  const rows = proof.flatMap((line) => {
    if (!line.startsWith('row ')) return [];
    const text = line.slice(4);
    tree.add(leafOf(text));
    const [id, kind, debit, credit, amount, currency, us, , original, , , , ...reference] = text.split('|');
    if ((debit === account) === (credit === account) || currency !== settlement.currency)
      refuse(`row ${id} (${kind}) is not on its account`);
    const minor = credit === account ? BigInt(amount) : -BigInt(amount);
    sum += minor;
    return [{ id, kind, minor, time: timeOf(us), original, reference: reference.join('|') }];
  });
  if (tree.root() !== settlement.root) refuse('its rows are not those of its root');
  if (sum !== minorOf(settlement.closing)) {
    const found = textOf(sum, decimalsOf(settlement));
    refuse(`its rows lead from ${settlement.carried} to ${found}, and it states ${settlement.closing}`);
  }
  return rows;
}

const timeOf = (us) => new Date(Number(BigInt(us) / 1000n)).toISOString();

/** @returns the name of the log, which is that of the installation */
async function verifyCheckpoint({ note, before, after }, closings, key) {
  const { origin, size, root } = await openCheckpoint(note, key);
  const tree = new Tree();
  const addHidden = (line) => line.startsWith('- ') && tree.addHidden(line.slice(2));
  const isWhole =
    before.every(addHidden) &&
    closings.every((closing) => tree.add(leafOf(closing))) &&
    after.every(addHidden);
  if (!isWhole || tree.size !== size || tree.root() !== root)
    refuse(`its days, ${dayOf(closings[0])} and later, are not those of the checkpoint of ${origin}`);
  return origin;
}

/** Says how a settlement was paid. Of the bank, the proof has only the operator's word. */
function paidBy({ payable, closing, outstanding, state, currency }, payments) {
  const due = minorOf(payable);
  if (due !== 0n && due !== minorOf(closing) - minorOf(outstanding))
    refuse(`it states that ${payable} is payable, and ${closing} less ${outstanding} would be`);
  const last = payments.at(-1);
  if (last?.kind !== 'PAYOUT') {
    if (state === 'PAID') refuse('it states that it is paid, and names no payout');
    return due === 0n ? 'nothing is payable' : 'not paid yet';
  }
  if (last.amount !== payable) refuse(`it was paid ${last.amount} ${currency}, and ${payable} is payable`);
  const seen = last.entries.reduce((sum, { amount }) => sum + minorOf(amount), 0n);
  if (last.entries.length === 0) return `paid on ${last.valueDate}, not yet seen at the bank`;
  if (seen !== -due) refuse(`the entries of the bank are not the ${payable} that it was paid`);
  const entries = last.entries.map(({ reference, bookedOn }) => `${reference} of ${bookedOn}`);
  return `paid by bank entry ${entries.join(' and ')}`;
}

/** Returns what is wrong between settlements: sentences. */
function compareSettlements(proofs) {
  const findings = [];
  const [first] = proofs;
  const closings = new Map();
  const rows = new Map();
  for (const each of proofs) {
    const { name, origin, settlement } = each;
    if (origin !== first.origin)
      findings.push(`${name} is of ${origin}, and ${first.name} is of another installation, ${first.origin}`);
    if (settlement.merchantId !== first.settlement.merchantId)
      findings.push(`${name} and ${first.name} are of different merchants`);
    for (const closing of each.closings) {
      const known = closings.get(dayOf(closing)) ?? { closing, name };
      if (known.closing !== closing)
        findings.push(`${dayOf(closing)} differs in ${known.name} and ${name}: there are two histories`);
      closings.set(dayOf(closing), known);
    }
    for (const { id, kind } of each.rows) {
      const other = rows.get(id);
      if (other) findings.push(`row ${id} (${kind}) is in ${other} and in ${name}: it was settled twice`);
      rows.set(id, name);
    }
  }
  return [...findings, ...compareNeighbors(proofs)];
}

/** Compares each settlement with the one before it in its currency. */
function compareNeighbors(proofs) {
  const sorted = [...proofs].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  return sorted.flatMap((each, at) => {
    const before = sorted[at - 1];
    if (!before || before.settlement.currency !== each.settlement.currency) return [];
    const { firstDay, carried } = each.settlement;
    const { lastDay, closing } = before.settlement;
    if (firstDay <= lastDay) return [`${before.name} and ${each.name} both settle ${firstDay}`];
    const [, previous] = JSON.parse(each.closings[0]);
    const [, , , , endsAt] = JSON.parse(before.closings.at(-1));
    if (JSON.parse(each.closings[0])[3] !== endsAt) return [];
    if (previous !== before.settlement.closingHash)
      return [
        `${firstDay} in ${each.name} does not follow ${lastDay} in ${before.name}: there are two histories`,
      ];
    if (carried !== closing)
      return [`${each.name} begins with ${carried}, and ${before.name} ended with ${closing}`];
    return [];
  });
}

const keyOf = ({ settlement: { currency, firstDay } }) => `${currency} ${firstDay}`;

/**
 * Proves that the redemptions in the file of a till are in closed days, each in one settlement, and that
 * the settlements have no others.
 * @param till the text of the file, as CSV
 * @param settlements the texts of the proofs
 * @returns what is wrong, what else is of interest, and what was proved: sentences
 */
async function prove(till, settlements, options) {
  const findings = [];
  const proofs = [];
  for (const text of settlements)
    try {
      proofs.push(await verifySettlement(text, options));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      findings.push(error.message);
    }
  if (findings.length > 0 || proofs.length === 0) return { findings, notes: [] };
  findings.push(...compareSettlements(proofs));
  const decimals = new Map(proofs.map(({ settlement }) => [settlement.currency, decimalsOf(settlement)]));
  const { rows, findings: wrong } = readTill(till, decimals);
  findings.push(...wrong);
  const settled = sumByReference(proofs);
  findings.push(...compareTill(rows, settled, proofs, decimals));
  const notes = proofs.map(({ name, paid }) => `${name}: ${paid}`);
  if (options?.key === undefined) notes.push('no signature was verified: no key was given');
  const sums = [...decimals].map(([currency, places]) => {
    const own = rows.filter((row) => row.currency === currency);
    return `${textOf(
      own.reduce((sum, { minor }) => sum + minor, 0n),
      places,
    )} ${currency}`;
  });
  const names = proofs.map(({ settlement }) => settlement.number).join(', ');
  const sentence =
    `proved: the ${rows.length} lines of the file, ${sums.join(' and ')}, are in closed days, ` +
    `each in one settlement (${names}), and nothing else is`;
  return { findings, notes, ...(findings.length === 0 && { sentence }) };
}

/**
 * Sums the rows that a till made by currency and reference. A correction has the reference of the redemption
 * that it corrects; `isEarlier` if that one is in none of the settlements.
 */
function sumByReference(proofs) {
  const byId = new Map(proofs.flatMap(({ rows }) => rows.map((row) => [row.id, row])));
  const sums = new Map();
  for (const { name, settlement, rows } of proofs)
    for (const row of rows.filter(({ kind }) => OF_TILLS.includes(kind))) {
      let first = row;
      while (byId.has(first.original) && first.original !== first.id) first = byId.get(first.original);
      const key = `${settlement.currency} ${first.reference}`;
      const sum = sums.get(key) ?? { minor: 0n, name, time: first.time, isEarlier: true };
      sum.minor += row.minor;
      if (first.original === '') sum.isEarlier = false;
      sums.set(key, sum);
    }
  return sums;
}

/** Returns in which references the file of a till and the settlements differ. */
function compareTill(rows, settled, proofs, decimals) {
  const findings = [];
  const inFile = new Map();
  for (const row of rows) {
    const key = `${row.currency} ${row.reference}`;
    inFile.set(key, [...(inFile.get(key) ?? []), row]);
  }
  for (const [key, own] of inFile) {
    const [{ currency, reference, line }] = own;
    const amount = (minor) => `${textOf(minor, decimals.get(currency))} ${currency}`;
    const minor = own.reduce((sum, row) => sum + row.minor, 0n);
    const found = settled.get(key);
    const where = `line ${own.map((row) => row.line).join(' and ')}: ${reference}`;
    if (!found) findings.push(`line ${line}: ${reference}, ${amount(minor)}, ${missing(own[0], proofs)}`);
    else if (found.minor === own[0].minor && found.minor !== minor)
      findings.push(`${where} is ${own.length} times in the file, and once in ${found.name}`);
    else if (found.minor !== minor)
      findings.push(`${where} is ${amount(minor)} in the file, and ${amount(found.minor)} in ${found.name}`);
  }
  for (const [key, { minor, name, time, isEarlier }] of settled) {
    if (inFile.has(key) || minor === 0n || isEarlier) continue;
    const [currency, ...reference] = key.split(' ');
    const amount = `${textOf(minor, decimals.get(currency))} ${currency}`;
    findings.push(`${reference.join(' ')}, ${amount} at ${time}, is in ${name}, and not in the file`);
  }
  return findings;
}

/** Says why a line is in no settlement. */
function missing({ day, currency }, proofs) {
  const own = proofs.filter(({ settlement }) => settlement.currency === currency);
  const last = own
    .map(({ settlement }) => settlement.lastDay)
    .sort()
    .at(-1);
  const first = own.map(({ settlement }) => settlement.firstDay).sort()[0];
  if (day > last)
    return `is of ${day}: these settlements end with ${last}, so its day is open or settled later`;
  if (day < first) return `is of ${day}: these settlements begin with ${first}`;
  return 'is in no settlement';
}

if (typeof module === 'object') module.exports = { prove, verifySettlement };
