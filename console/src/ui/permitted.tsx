import { Navigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ApiProblem } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { type Place, type SideMenu, useMenu } from './menu.ts';
import { Head, Problem } from './parts.tsx';

type Props = { menu: SideMenu; path: string; children: ReactNode };

/** A page, unless it is one of the menu that this person may not use. */
export function Permitted({ menu, path, children }: Props) {
  const { offers } = useApp();
  const places = menu.flatMap((group) => group.places);
  const place = places.find(({ name, to = `/${name}` }) => to === path);
  return place?.needs === undefined || offers(place.needs) ? (
    children
  ) : (
    <Forbidden of={place} needs={place.needs} menu={menu} />
  );
}

/** Says which roles may use a page. Somebody without an overview begins elsewhere. */
function Forbidden({ of, needs, menu }: { of: Place; needs: string; menu: SideMenu }) {
  const { nav } = useTexts();
  const { operations } = useApp();
  const first = useMenu(menu)[0]?.places[0]?.to;
  if (of.to === '/') return <Navigate to={first ?? '/account'} replace />;
  const roles = [...(operations?.get(needs)?.roles ?? [])];
  return (
    <>
      <Head title={nav[of.name]} />
      <Problem error={new ApiProblem(403, { code: 'forbidden', roles })} />
    </>
  );
}
