import { ActionIcon, Button, Menu } from '@mantine/core';
import { type ReactNode, useRef, useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { ActionDialog } from './action-dialog.tsx';
import { useApp } from './app.tsx';
import { Icon } from './icons.tsx';
import { useWords } from './words.ts';

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
  readonly onDone?: (answer: Readonly<Record<string, unknown>>) => void;
};

export type Acts = readonly (Act | false | null | undefined)[];

type Props = {
  readonly acts: Acts;
  /** The first action is the one that people use most. */
  readonly primary?: boolean | undefined;
  /** The number of buttons; the other actions are in a menu. */
  readonly shown?: number;
  /** The subject of the menu, for screen readers. */
  readonly of?: string;
};

/** The actions of a page: buttons for common ones, a menu for the rest, and a dialog for each. */
export function Actions({ acts, primary = false, shown = 2, of }: Props) {
  const texts = useTexts().list;
  const words = useWords();
  const { offers } = useApp();
  const [opened, setOpened] = useState<Act>();
  const menu = useRef<HTMLButtonElement>(null);
  const offered = acts.filter((act): act is Act => Boolean(act && offers(act.name)));
  const close = () => setOpened(undefined);
  // The result of an action stays visible when the page offers no more actions.
  if (offered.length === 0 && !opened) return null;
  const labelOf = ({ name, label }: Act) => label ?? words.action(name).label;
  const isSplit = offered.length > shown + 1 || shown === 0;
  const buttons = isSplit ? offered.slice(0, shown) : offered;
  const rest = isSplit ? offered.slice(shown) : [];
  const [harmless, dangerous] = [rest.filter((act) => !act.isDanger), rest.filter((act) => act.isDanger)];
  const item = (act: Act) => (
    <Menu.Item
      key={labelOf(act)}
      className={act.isDanger ? 'bad' : undefined}
      onClick={() => {
        // To which the dialog gives the focus back.
        menu.current?.focus();
        setOpened(act);
      }}
    >
      {labelOf(act)}
    </Menu.Item>
  );
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
              ref={menu}
              variant="default"
              aria-label={of ? `${texts.actions}: ${of}` : texts.actions}
            >
              <Icon name="more" />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            {harmless.map(item)}
            {harmless.length > 0 && dangerous.length > 0 && <Menu.Divider />}
            {dangerous.map(item)}
          </Menu.Dropdown>
        </Menu>
      )}
      <ActionDialog act={opened} close={close} />
    </>
  );
}
