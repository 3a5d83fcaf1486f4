import type { View } from './views.ts';

/**
 * The saved views in this browser, for each account. Each has an entry of its own, so that two tabs never
 * overwrite each other's.
 */

const prefixOf = (userId: string) => `scrip.view.${userId}.`;

/** The views of an account as text, which changes when one of them does. */
export function storedViews(userId: string): string {
  const prefix = prefixOf(userId);
  const views = Object.keys(localStorage)
    .filter((key) => key.startsWith(prefix))
    .map((key) => ({ address: key.slice(prefix.length), name: localStorage.getItem(key) ?? '' }))
    .sort((one, other) => one.name.localeCompare(other.name));
  return JSON.stringify(views);
}

/** Whether an account has views of lists on a page. */
export const hasViewsOf = (userId: string, path: string): boolean =>
  Object.keys(localStorage).some((key) => key.split('?')[0] === prefixOf(userId) + path);

/** Calls a function when this tab or another one has changed a view. @returns a function that ends this */
export function onViews(changed: () => void): () => void {
  addEventListener('storage', changed);
  return () => removeEventListener('storage', changed);
}

// Browsers tell the other tabs only.
const changed = () => dispatchEvent(new StorageEvent('storage'));

/** Saves a view, or renames the one that has its address. @throws if the browser stores nothing */
export function saveView(userId: string, { address, name }: View): void {
  localStorage.setItem(prefixOf(userId) + address, name);
  changed();
}

export function removeView(userId: string, address: string): void {
  localStorage.removeItem(prefixOf(userId) + address);
  changed();
}
