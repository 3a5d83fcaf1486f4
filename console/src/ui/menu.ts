import type { Catalogue } from '../i18n/en.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import type { IconName } from './icons.tsx';

export type Place = {
  /** Its text, its icon, and its address unless it has another one. */
  readonly name: keyof Catalogue['nav'] & IconName;
  readonly to?: string;
  /** The operation without which the page is useless. */
  readonly needs?: string;
};
export type SideMenu = readonly {
  readonly group?: keyof Catalogue['nav'];
  readonly places: readonly Place[];
}[];

/** The places of the menu that this person may use. */
export function useMenu(menu: SideMenu) {
  const { nav } = useTexts();
  const { offers } = useApp();
  const isOffered = ({ needs }: Place) => needs === undefined || offers(needs);
  const toLink = ({ name, to = `/${name}` }: Place) => ({ to, icon: name, label: nav[name] });
  return menu
    .map(({ group, places }) => ({
      label: group && nav[group],
      places: places.filter(isOffered).map(toLink),
    }))
    .filter(({ places }) => places.length > 0);
}

export type Places = ReturnType<typeof useMenu>;
