import type { ReactNode } from 'react';

export type Input = Readonly<Record<string, unknown>>;

/** An operation, with the input that the page already knows. */
export type Act = {
  /**
   * The name of the operation, such as `voucher.block`. The action is left out if the roles do not permit it.
   */
  readonly name: string;
  /** A label that replaces the name of the operation. */
  readonly label?: string;
  readonly given?: Input;
  /** The present values of fields. The form begins with them, and sends those that were changed. */
  readonly current?: Input;
  /** Values with which the form begins, and which it sends. */
  readonly initial?: Input;
  /** The source of `current`, to notice that somebody else has changed it. */
  readonly source?: string;
  readonly isDanger?: boolean;
  /** The effect, in numbers; of an action on a proposal, the one of its operation. */
  readonly effect?: ReactNode | ((values: Input) => ReactNode);
  /** The operation that was proposed. */
  readonly proposed?: string;
  /** The page on which it is done, instead of a dialog. */
  readonly to?: string;
  readonly onDone?: (answer: Readonly<Record<string, unknown>>) => void;
};

export type Acts = readonly (Act | false | null | undefined)[];
