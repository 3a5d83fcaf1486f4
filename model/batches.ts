import { type Action, protocol } from './search.ts';

/**
 * A batch that two workers produce while the operator cancels it (src/batches/fill.ts, cancel.ts). A chunk of
 * one voucher is written and then recorded; both are one transaction, and only the record locks the batch.
 */

type Voucher = { balance: number; isClosed: boolean };

type State = {
  status: 'PROCESSING' | 'COMPLETED' | 'CANCELED';
  produced: number;
  float: number;
  reserve: number;
  settlement: number;
  vouchers: Voucher[];
  /** Whether each worker has written a chunk, which nobody else can see yet. */
  workers: ('idle' | 'written')[];
  /** Where the cancellation is: `read` only exists in a fault. */
  cancel: 'idle' | 'read' | 'done';
  /** Whether the job that voids the vouchers has ended. */
  isVoided: boolean;
  kills: number;
};

type Fault = 'recorded-blindly' | 'canceled-late' | 'spent-early';

/** The ordered vouchers, each worth 1. */
const QUANTITY = 2;
const WORKERS = [0, 1];

const worker = (at: number, fault: Fault | undefined): Action<State>[] => [
  {
    // `create_vouchers`, in a transaction that is not committed.
    says: `worker ${at + 1} writes a voucher`,
    when: ({ workers, status, produced }) =>
      workers[at] === 'idle' && status === 'PROCESSING' && produced < QUANTITY,
    does({ workers }) {
      workers[at] = 'written';
    },
  },
  {
    // The function `book` of fill.ts: lock, compare, `advance`, commit. A surplus is rolled back.
    says: `worker ${at + 1} records its voucher and commits`,
    when: ({ workers }) => workers[at] === 'written',
    does(state) {
      state.workers[at] = 'idle';
      const isSurplus = state.status !== 'PROCESSING' || state.produced >= QUANTITY;
      if (isSurplus && fault !== 'recorded-blindly') return;
      state.vouchers.push({ balance: 1, isClosed: false });
      state.reserve--;
      state.produced++;
      if (state.produced === QUANTITY && state.status === 'PROCESSING') state.status = 'COMPLETED';
    },
  },
  {
    says: `worker ${at + 1} is killed`,
    when: ({ workers, kills }) => kills === 0 && workers[at] === 'written',
    does(state) {
      state.workers[at] = 'idle';
      state.kills++;
    },
  },
];

/** cancelBatch: the price goes back to the float in the transaction that ends the batch. */
function release(state: State): void {
  state.status = 'CANCELED';
  state.float += QUANTITY;
  state.reserve -= QUANTITY;
}

const operator = (fault: Fault | undefined): Action<State>[] => [
  {
    says: 'the operator cancels the batch',
    when: ({ cancel }) => cancel === 'idle',
    does(state) {
      const isOpen = state.status === 'PROCESSING';
      state.cancel = isOpen && fault === 'canceled-late' ? 'read' : 'done';
      if (isOpen && state.cancel === 'done') release(state);
    },
  },
  {
    says: 'the cancellation goes on with the status that it has read',
    when: ({ cancel }) => cancel === 'read',
    does(state) {
      state.cancel = 'done';
      release(state);
    },
  },
];

const job: Action<State>[] = [
  {
    // `void_vouchers`, a chunk of one voucher.
    says: 'the job voids a voucher',
    when: ({ status, vouchers, isVoided }) =>
      status === 'CANCELED' && !isVoided && vouchers.some(({ isClosed }) => !isClosed),
    does(state) {
      const voucher = state.vouchers.find(({ isClosed }) => !isClosed) as Voucher;
      state.reserve += voucher.balance;
      Object.assign(voucher, { balance: 0, isClosed: true });
    },
  },
  {
    says: 'the job finds no voucher and ends',
    when: ({ status, vouchers, isVoided }) =>
      status === 'CANCELED' && !isVoided && vouchers.every(({ isClosed }) => isClosed),
    does(state) {
      state.isVoided = true;
    },
  },
];

const till = (fault: Fault | undefined): Action<State>[] =>
  [0, 1].map((at) => ({
    // `redeem` finds vouchers of completed batches only.
    says: `a till redeems voucher ${at}`,
    when: ({ status, vouchers }: State) =>
      (status === 'COMPLETED' || fault === 'spent-early') && (vouchers[at]?.balance ?? 0) > 0,
    does(state: State) {
      Object.assign(state.vouchers[at] ?? {}, { balance: 0 });
      state.settlement++;
    },
  }));

export const batches = protocol<State, Fault>({
  title: 'batch and cancel',
  faults: {
    'recorded-blindly': 'a worker records a chunk without comparing the batch under its lock',
    'canceled-late': 'a cancellation reads the status before it locks the batch',
    'spent-early': 'a voucher can be redeemed before its batch is completed',
  },
  initial: [
    {
      status: 'PROCESSING',
      produced: 0,
      float: 0,
      reserve: QUANTITY,
      settlement: 0,
      vouchers: [],
      workers: ['idle', 'idle'],
      cancel: 'idle',
      isVoided: false,
      kills: 0,
    },
  ],
  actions: (fault) => [
    ...WORKERS.flatMap((at) => worker(at, fault)),
    ...operator(fault),
    ...job,
    ...till(fault),
  ],
  always: {
    'no more vouchers are made than ordered': ({ vouchers }) => vouchers.length <= QUANTITY,
    'no money is made': ({ float, reserve, settlement, vouchers }) =>
      float + reserve + settlement + vouchers.reduce((sum, { balance }) => sum + balance, 0) === QUANTITY,
    'the price of a completed batch is not on the float': ({ status, float }) =>
      float === (status === 'CANCELED' ? QUANTITY : 0),
    'nothing is spent of a batch that ends canceled': ({ status, settlement }) =>
      status !== 'CANCELED' || settlement === 0,
  },
  atEnd: {
    'a completed batch has all its vouchers': ({ status, vouchers }) =>
      status !== 'COMPLETED' || vouchers.length === QUANTITY,
    'a canceled batch has an empty reserve and no open voucher': ({ status, reserve, vouchers }) =>
      status !== 'CANCELED' || (reserve === 0 && vouchers.every(({ isClosed }) => isClosed)),
    'no batch waits forever': ({ status }) => status !== 'PROCESSING',
  },
});
