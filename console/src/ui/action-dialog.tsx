import './form.css';
import { useRef, useState } from 'react';
import type { Act } from './act.ts';
import { ActionForm } from './action-form.tsx';
import { useApp } from './app.tsx';
import { Dialog } from './dialog.tsx';
import { type Held, useHeld } from './held.ts';
import { useWords } from './words.ts';

/** The dialog of an action, which is open as long as there is one. */
export function ActionDialog({ act, close }: { act: Act | undefined; close(): void }) {
  const words = useWords();
  const operation = useApp().operations?.get(act?.name ?? '');
  const [held, setHeld] = useState<Held>();
  // What is held now: an action that is done leads to another page before this is drawn again.
  const now = useRef<Held>(undefined);
  const hold = (what: Held) => {
    now.current = what;
    setHeld(what);
  };
  const mayLeave = useHeld(() => now.current);
  const isSecret = held === 'secret';
  const end = () => {
    hold(undefined);
    close();
  };
  return (
    <Dialog
      opened={act !== undefined}
      // By Escape, or by its cross.
      onClose={() => mayLeave() && end()}
      closeOnEscape={!isSecret}
      withCloseButton={!isSecret}
      title={act && (act.label ?? words.action(act.name))}
      closeOnClickOutside={false}
      size={operation?.fields.some(({ section }) => section) ? 760 : undefined}
    >
      {act && operation && <ActionForm act={act} operation={operation} hold={hold} close={end} />}
    </Dialog>
  );
}
