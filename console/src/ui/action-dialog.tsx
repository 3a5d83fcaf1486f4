import { ActionForm } from './action-form.tsx';
import type { Act } from './actions.tsx';
import { useApp } from './app.tsx';
import { Dialog } from './dialog.tsx';
import { useWords } from './words.ts';

/** The dialog of an action, which is open as long as there is one. */
export function ActionDialog({ act, close }: { act: Act | undefined; close(): void }) {
  const words = useWords();
  const operation = useApp().operations?.get(act?.name ?? '');
  return (
    <Dialog
      opened={act !== undefined}
      onClose={close}
      title={act && (act.label ?? words.action(act.name).label)}
      closeOnClickOutside={false}
    >
      {act && operation && <ActionForm act={act} operation={operation} close={close} />}
    </Dialog>
  );
}
