import { useCallback, useReducer } from 'react';

/** The rows of a list that are selected, by their keys. */
export type Selection = {
  has(key: string): boolean;
  /**
   * Selects a row or not; with `isRange`, also those between it and the row that was changed before. It stays
   * the same function, so that only the rows that it changes are rendered.
   */
  readonly toggle: (key: string, isRange?: boolean) => void;
  /** Selects all rows, or none if all are selected. */
  toggleAll(): void;
};

type Chosen = { readonly chosen: ReadonlySet<string>; readonly last: string };
type Turn = { readonly key: string; readonly isRange: boolean };

const NONE: Chosen = { chosen: new Set(), last: '' };

/** @param keys of the rows, in their order */
export function useSelection(keys: readonly string[]) {
  const turned = ({ chosen, last }: Chosen, turn: Turn | readonly string[]): Chosen => {
    if ('length' in turn) return { chosen: new Set(turn), last };
    const { key, isRange } = turn;
    const [from, to] = [keys.indexOf(last), keys.indexOf(key)].sort((one, other) => one - other);
    const changed = isRange && from !== undefined && from >= 0 ? keys.slice(from, (to ?? 0) + 1) : [key];
    const next = new Set(keys.filter((each) => chosen.has(each)));
    for (const each of changed)
      if (chosen.has(key)) next.delete(each);
      else next.add(each);
    return { chosen: next, last: key };
  };
  const [{ chosen }, turn] = useReducer(turned, NONE);
  const toggle = useCallback((key: string, isRange = false) => turn({ key, isRange }), []);
  // A row that is no longer listed is not selected.
  const selected = keys.filter((key) => chosen.has(key));
  const isAll = selected.length === keys.length;
  const selection: Selection = {
    has: (key) => chosen.has(key),
    toggle,
    toggleAll: () => turn(isAll ? [] : keys),
  };
  return { selection, selected, clear: () => turn([]) };
}
