import { useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { ActionForm, type Held } from './action-form.tsx';
import type { Act } from './actions.tsx';
import { useApp } from './app.tsx';
import { Dialog } from './dialog.tsx';
import { useWords } from './words.ts';

/** The dialog of an action, which is open as long as there is one. */
export function ActionDialog({ act, close }: { act: Act | undefined; close(): void }) {
  const words = useWords();
  const { throwAway } = useTexts().action;
  const operation = useApp().operations?.get(act?.name ?? '');
  const [held, hold] = useState<Held>();
  const isSecret = held === 'secret';
  const end = () => {
    hold(undefined);
    close();
  };
  return (
    <Dialog
      opened={act !== undefined}
      // By Escape, or by its cross.
      onClose={() => (held === undefined || confirm(throwAway)) && end()}
      closeOnEscape={!isSecret}
      withCloseButton={!isSecret}
      title={act && (act.label ?? words.action(act.name).label)}
      closeOnClickOutside={false}
    >
      {act && operation && <ActionForm act={act} operation={operation} hold={hold} close={end} />}
    </Dialog>
  );
}
