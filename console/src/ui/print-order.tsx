import { Actions } from './actions.tsx';

/** Orders a printable sheet of a batch. */
export function PrintOrder({ transactionId, effect }: { transactionId: string; effect: string }) {
  return <Actions acts={[{ name: 'batch.export', given: { transactionId }, effect }]} />;
}
