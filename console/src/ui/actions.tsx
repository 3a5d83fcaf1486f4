import { ActionIcon, Button, Menu } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useRef, useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import type { Act, Acts } from './act.ts';
import { useApp } from './app.tsx';
import { Icon } from './icons.tsx';
import { useWhenLoaded } from './loaded.ts';
import { useWords } from './words.ts';

// A page that only shows something loads no forms: they come when somebody turns to a button.
export const loadDialog = () => import('./action-dialog.tsx');
export const ActionDialog = lazy(async () => ({ default: (await loadDialog()).ActionDialog }));
const prepare = () => void loadDialog().catch(() => undefined);

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
  const { list: texts } = useTexts();
  const whenLoaded = useWhenLoaded();
  const words = useWords();
  const { offers } = useApp();
  const [opened, setOpened] = useState<Act>();
  const [wasOpened, setWasOpened] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  const offered = acts.filter((act): act is Act => Boolean(act && offers(act.name)));
  const navigate = useNavigate();
  const open = (act: Act) => {
    if (act.to !== undefined) return void navigate({ to: act.to });
    const show = () => {
      setWasOpened(true);
      setOpened(act);
    };
    return whenLoaded(loadDialog, show);
  };
  const close = () => setOpened(undefined);
  // The result of an action stays visible when the page offers no more actions.
  if (offered.length === 0 && !opened) return null;
  const labelOf = ({ name, label }: Act) => label ?? words.action(name);
  // One that is dangerous may stand beside the others; several of them are in the menu.
  const areMany = offered.filter(({ isDanger }) => isDanger).length > 1;
  const isSplit = offered.length > shown + 1 || shown === 0 || areMany;
  const inReach = areMany ? offered.filter(({ isDanger }) => !isDanger) : offered;
  const buttons = isSplit ? inReach.slice(0, shown) : offered;
  const rest = offered.filter((act) => !buttons.includes(act));
  const [harmless, dangerous] = [rest.filter((act) => !act.isDanger), rest.filter((act) => act.isDanger)];
  // Its effect may depend on what is loaded after it was opened.
  const latest = opened && offered.find((act) => labelOf(act) === labelOf(opened));
  const item = (act: Act) => (
    <Menu.Item
      key={labelOf(act)}
      className={act.isDanger ? 'bad' : undefined}
      onClick={() => {
        // To which the dialog gives the focus back.
        menu.current?.focus();
        open(act);
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
          onPointerEnter={prepare}
          onFocus={prepare}
          onClick={() => open(act)}
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
              onPointerEnter={prepare}
              onFocus={prepare}
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
      <Suspense>
        {wasOpened && (
          <ActionDialog act={latest ? { ...opened, effect: latest.effect } : opened} close={close} />
        )}
      </Suspense>
    </>
  );
}
