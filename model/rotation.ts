import { type Action, protocol } from './search.ts';

/**
 * A rotation of the key ring while a worker creates a voucher and a till looks one up (src/rotation/,
 * src/keyring/store.ts, src/vouchers/look-up.ts). Key 1 is replaced by key 2.
 */

type Key = 1 | 2;

/** A voucher: its code, and the key under which it is sealed and found. */
type Voucher = { code: 'a' | 'b'; key: Key };

type State = {
  /** The keys in use, and whether key 1 was dropped. */
  inUse: Key[];
  isDropped: boolean;
  /** What others can see. The first voucher exists from the beginning. */
  vouchers: Voucher[];
  /** The worker creates a voucher in one transaction, and draws the code of the first voucher at first. */
  worker: { step: 'idle' | 'held' | 'compared' | 'written' | 'done'; knows: Key[]; made: Voucher };
  /** The rotation reads a voucher, then writes it under key 2; `at` is the next voucher. */
  rotation: { step: 'idle' | 'reads' | 'writes' | 'proves' | 'retired' | 'done'; at: number };
  till: { step: 'waits' | 'asks' | 'refreshes' | 'found' | 'unknown'; knows: Key[]; left: Key[] };
  kills: number;
};

type Fault = 'not-held' | 'newest-first' | 'not-refreshed' | 'newest-only';

const isHeld = ({ worker: { step } }: State) => ['held', 'compared', 'written'].includes(step);

const worker = (fault: Fault | undefined): Action<State>[] => [
  {
    // holdKeyRing: `hold_key_ring` takes a shared lock until the transaction ends, then reads the keys.
    says: 'the worker begins, and reads the keys in use',
    when: ({ worker, isDropped }) => worker.step === 'idle' && !isDropped,
    does({ worker, inUse }) {
      worker.step = 'held';
      worker.knows = inUse;
    },
  },
  {
    // drawFreeCodes: codes are compared with those under older keys.
    says: 'the worker compares its code with those under the older key',
    when: ({ worker }) => worker.step === 'held',
    does({ worker, vouchers }) {
      const older = worker.knows.slice(0, -1);
      const isTaken = vouchers.some(({ code, key }) => code === 'a' && older.includes(key));
      worker.made = {
        code: isTaken && fault !== 'newest-only' ? 'b' : 'a',
        key: worker.knows.at(-1) as Key,
      };
      worker.step = 'compared';
    },
  },
  {
    // `create_vouchers`: the unique index on the code's value under one key.
    says: 'the worker writes its voucher',
    when: ({ worker }) => worker.step === 'compared',
    does({ worker, vouchers }) {
      const { made } = worker;
      if (vouchers.some(({ code, key }) => code === made.code && key === made.key)) made.code = 'b';
      worker.step = 'written';
    },
  },
  {
    says: 'the worker commits',
    when: ({ worker }) => worker.step === 'written',
    does({ worker, vouchers }) {
      vouchers.push(worker.made);
      worker.step = 'done';
    },
  },
];

const rotation = (fault: Fault | undefined): Action<State>[] => [
  {
    // beginRotation: it takes the lock of `hold_key_ring` exclusively.
    says: 'the rotation puts key 2 to use',
    when: (state) => state.rotation.step === 'idle' && (!isHeld(state) || fault === 'not-held'),
    does({ rotation, inUse }) {
      inUse.push(2);
      rotation.step = 'reads';
    },
  },
  {
    says: 'the rotation reads a voucher to seal it again',
    when: ({ rotation, vouchers }) => rotation.step === 'reads' && rotation.at < vouchers.length,
    does({ rotation }) {
      rotation.step = 'writes';
    },
  },
  {
    // `reseal_vouchers`, in a transaction that holds the key ring.
    says: 'the rotation writes the voucher under key 2',
    when: ({ rotation }) => rotation.step === 'writes',
    does({ rotation, vouchers }) {
      Object.assign(vouchers[rotation.at] ?? {}, { key: 2 });
      rotation.at++;
      rotation.step = 'reads';
    },
  },
  {
    says: 'the rotation finds no more vouchers',
    when: ({ rotation, vouchers }) => rotation.step === 'reads' && rotation.at >= vouchers.length,
    does({ rotation }) {
      rotation.step = 'proves';
    },
  },
  {
    // finishRotation: countLeftBehind opens every voucher before the older key is retired.
    says: 'the rotation proves that nothing is left under key 1, and retires it',
    when: ({ rotation }) => rotation.step === 'proves',
    does(state) {
      if (state.vouchers.some(({ key }) => key === 1)) {
        state.rotation = { step: 'reads', at: 0 };
        return;
      }
      state.inUse = [2];
      state.rotation.step = 'retired';
    },
  },
  {
    // dropKey: it counts again.
    says: 'key 1 is dropped',
    when: ({ rotation, vouchers }) => rotation.step === 'retired' && vouchers.every(({ key }) => key === 2),
    does(state) {
      state.isDropped = true;
      state.rotation.step = 'done';
    },
  },
  {
    says: 'the process of the rotation is killed, and it is started again',
    when: ({ rotation, kills }) => kills === 0 && ['reads', 'writes', 'proves'].includes(rotation.step),
    does(state) {
      // The progress is kept in keyring_rotations, but the voucher that was read is read again.
      state.kills++;
      state.rotation.step = 'reads';
    },
  },
];

/** `find` of look-up.ts: each key in use, oldest first; then the database is asked for newer ones. */
const till = (fault: Fault | undefined): Action<State>[] => [
  {
    says: 'the till asks for the first voucher',
    when: ({ till }) => till.step === 'waits',
    does({ till }) {
      till.step = 'asks';
      till.left = fault === 'newest-first' ? till.knows.toReversed() : till.knows;
    },
  },
  {
    says: 'the till looks the voucher up under its next key',
    when: ({ till }) => till.step === 'asks',
    does({ till, vouchers }) {
      const [key, ...left] = till.left;
      till.left = left;
      if (vouchers[0]?.key === key) till.step = 'found';
      else if (left.length === 0) till.step = fault === 'not-refreshed' ? 'unknown' : 'refreshes';
    },
  },
  {
    says: 'the till reads which keys are in use',
    when: ({ till }) => till.step === 'refreshes',
    does({ till, inUse }) {
      const isSame = JSON.stringify(till.knows) === JSON.stringify(inUse);
      till.knows = inUse;
      till.left = fault === 'newest-first' ? inUse.toReversed() : inUse;
      till.step = isSame ? 'unknown' : 'asks';
    },
  },
  {
    says: 'the till learns of the keys in use',
    when: ({ till }) => till.step === 'waits',
    does({ till, inUse }) {
      till.knows = inUse;
    },
  },
];

export const rotations = protocol<State, Fault>({
  title: 'key rotation',
  faults: {
    'not-held': 'a new key is put to use while a transaction seals under the older one',
    'newest-first': 'a till looks a voucher up under the newest key first',
    'not-refreshed': 'a till that finds nothing does not ask for newer keys',
    'newest-only': 'a new code is compared with those under the newest key only',
  },
  initial: [
    {
      inUse: [1],
      isDropped: false,
      vouchers: [{ code: 'a', key: 1 }],
      worker: { step: 'idle', knows: [], made: { code: 'a', key: 1 } },
      rotation: { step: 'idle', at: 0 },
      till: { step: 'waits', knows: [1], left: [] },
      kills: 0,
    },
  ],
  actions: (fault) => [...worker(fault), ...rotation(fault), ...till(fault)],
  always: {
    'a voucher that exists is found': ({ till }) => till.step !== 'unknown',
    'two vouchers have different codes': ({ vouchers }) =>
      new Set(vouchers.map(({ code }) => code)).size === vouchers.length,
    'a key that was retired finds no voucher': ({ inUse, vouchers }) =>
      vouchers.every(({ key }) => inUse.includes(key)),
  },
  atEnd: {
    'the rotation ends': ({ rotation }) => rotation.step === 'done',
  },
});
