import { useState } from 'react';

/** The rows of a list that are selected, by their keys. */
export type Selection = {
  has(key: string): boolean;
  /** Selects a row or not; with `isRange`, also those between it and the row that was changed before. */
  toggle(key: string, isRange?: boolean): void;
  /** Selects all rows, or none if all are selected. */
  toggleAll(): void;
};

/** @param keys of the rows, in their order */
export function useSelection(keys: readonly string[]) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [last, setLast] = useState('');
  // A row that is no longer listed is not selected.
  const selected = keys.filter((key) => chosen.has(key));
  const isAll = selected.length === keys.length;
  const selection: Selection = {
    has: (key) => chosen.has(key),
    toggle(key, isRange = false) {
      const [from, to] = [keys.indexOf(last), keys.indexOf(key)].sort((one, other) => one - other);
      const changed = isRange && from !== undefined && from >= 0 ? keys.slice(from, (to ?? 0) + 1) : [key];
      const next = new Set(selected);
      for (const each of changed)
        if (chosen.has(key)) next.delete(each);
        else next.add(each);
      setChosen(next);
      setLast(key);
    },
    toggleAll: () => setChosen(new Set(isAll ? [] : keys)),
  };
  return { selection, selected, clear: () => setChosen(new Set()) };
}
