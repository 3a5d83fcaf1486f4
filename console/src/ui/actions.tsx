import { ActionIcon, Button, Menu, Modal } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { ActionForm } from './action-form.tsx';
import { useApp } from './app.tsx';
import { Icon } from './icons.tsx';
import { useWords } from './words.ts';

export type Input = Readonly<Record<string, unknown>>;

/** An operation with what a page knows of its input. */
export type Act = {
  /** Of the operation, such as `voucher.block`. It is left out where the roles do not permit it. */
  readonly name: string;
  /** In the place of what the operation is called. */
  readonly label?: string;
  readonly given?: Input;
  /** Fields as they are now: the form begins with them, and sends those that were changed. */
  readonly current?: Input;
  /** What the form begins with, and sends. */
  readonly initial?: Input;
  /** Where `current` is read: to notice that somebody else has changed it meanwhile. */
  readonly source?: string;
  readonly isDanger?: boolean;
  /** What will change, in numbers. */
  readonly effect?: ReactNode;
  readonly onDone?: (answer: Readonly<Record<string, unknown>>) => void;
};

type Props = {
  readonly acts: readonly (Act | false | null | undefined)[];
  /** The first one is what people come for. */
  readonly primary?: boolean;
  /** How many are buttons; the others stand in a menu. */
  readonly shown?: number;
  /** Of what the menu is, for readers of the screen. */
  readonly of?: string;
};

/** What can be done here: buttons for what is common, a menu for the rest, a dialog for each. */
export function Actions({ acts, primary = false, shown = 2, of }: Props) {
  const texts = useTexts().list;
  const words = useWords();
  const { operations, offers } = useApp();
  const [opened, setOpened] = useState<Act>();
  const offered = acts.filter((act): act is Act => Boolean(act && offers(act.name)));
  const operation = opened && operations?.get(opened.name);
  const close = () => setOpened(undefined);
  // What came of an action is still shown when the page offers nothing more.
  if (offered.length === 0 && !opened) return null;
  const labelOf = ({ name, label }: Act) => label ?? words.action(name).label;
  const isSplit = offered.length > shown + 1 || shown === 0;
  const buttons = isSplit ? offered.slice(0, shown) : offered;
  const rest = isSplit ? offered.slice(shown) : [];
  return (
    <>
      {buttons.map((act, index) => (
        <Button
          key={labelOf(act)}
          variant={primary && index === 0 && !act.isDanger ? 'filled' : 'default'}
          className={act.isDanger ? 'bad' : undefined}
          onClick={() => setOpened(act)}
        >
          {labelOf(act)}
        </Button>
      ))}
      {rest.length > 0 && (
        <Menu>
          <Menu.Target>
            <ActionIcon
              variant="default"
              aria-label={of ? `${texts.actions}: ${of}` : texts.actions}
              onClick={(event) => event.stopPropagation()}
            >
              <Icon name="more" />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown onClick={(event) => event.stopPropagation()}>
            {rest.map((act) => (
              <Menu.Item
                key={labelOf(act)}
                className={act.isDanger ? 'bad' : undefined}
                onClick={() => setOpened(act)}
              >
                {labelOf(act)}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      <Modal
        opened={opened !== undefined}
        onClose={close}
        title={opened && labelOf(opened)}
        closeOnClickOutside={false}
        centered
        // A dialog in a row of a list: what is typed in it is nothing to the row.
        onClick={(event) => event.stopPropagation()}
        onKeyDown={(event) => event.stopPropagation()}
      >
        {opened && operation && <ActionForm act={opened} operation={operation} close={close} />}
      </Modal>
    </>
  );
}
