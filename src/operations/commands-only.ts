import { type Approval, alone, twoPeople } from '../operation.ts';

/** A command without an operation. */
type CommandOnly = {
  /** Why it has none: a sentence. */
  readonly why: string;
  /** Null for a command that changes nothing that is in the database. */
  readonly approval: Approval | null;
};

const CODES_LEAVE = twoPeople({ why: 'Codes and PINs are money.' });
const OF_THE_MACHINE = 'The account of the machine has the key file and the database anyway.';

/** Commands without an operation, by their words. */
export const COMMANDS_ONLY = {
  'backup create': { why: 'It writes files on the machine of the database.', approval: null },
  'backup list': { why: 'It reads a folder of the machine.', approval: null },
  'backup verify': { why: 'It starts a copy of the database on the machine.', approval: null },
  'batch export': {
    why: 'It writes codes and PINs in the clear. Over the network they leave only sealed.',
    approval: CODES_LEAVE,
  },
  'db dump': { why: 'It reads everything, and the service is stopped.', approval: null },
  'db load': {
    why: 'It creates the database that everything else needs.',
    approval: alone('Nobody is in the database yet.'),
  },
  'db archive': { why: 'It changes tables, which only the owner of the schema may.', approval: null },
  'books publish': { why: 'It writes files on the machine.', approval: null },
  'books pack': { why: 'It writes a folder of the machine, of what other operations read.', approval: null },
  bench: { why: 'It calls the service from outside, as a merchant.', approval: null },
  completion: { why: 'It prints a script for the shell of the machine.', approval: null },
  'db url': { why: 'It prints the password of the database.', approval: null },
  'import vouchers': {
    why: 'It reads codes and PINs in the clear. Over the network they come only sealed.',
    approval: twoPeople({ why: 'It makes vouchers with money on them.' }),
  },
  'keyring drop': {
    why: 'It changes the key file of the machine.',
    approval: twoPeople({ why: 'What is sealed under the key can never be read again.' }),
  },
  'keyring make': {
    why: 'Only the keeper of a key takes it off the machine.',
    approval: null,
  },
  'keyring seal': { why: 'It changes the key file of the machine.', approval: null },
  'keyring unseal': { why: 'It changes the key file of the machine.', approval: null },
  'keyring rotate': {
    why: 'It reads a new key from the key file of the machine.',
    approval: alone(OF_THE_MACHINE),
  },
  migrate: { why: 'It changes the schema, as its owner.', approval: alone(OF_THE_MACHINE) },
  'voucher export': {
    why: 'Like the export of a batch, with one voucher. `sheets.order-card` orders a sealed one.',
    approval: CODES_LEAVE,
  },
  probe: { why: 'It calls the service from outside, as a merchant.', approval: null },
  restore: { why: 'It replaces the database of the machine.', approval: alone(OF_THE_MACHINE) },
  serve: { why: 'It is the service.', approval: null },
  status: { why: 'It examines the machines of the database.', approval: null },
  witness: { why: 'It belongs to somebody else, who has no database.', approval: null },
  work: { why: 'It is the background work of the service.', approval: null },
} as const satisfies Readonly<Record<string, CommandOnly>>;
