import { useNavigate, useParams, useSearch } from '@tanstack/react-router';

/** The parameters in the address of a page: always texts. */
export type Filters = Readonly<Record<string, string | undefined>>;

export const useFilters = (): Filters => useSearch({ strict: false });

/** A part of the path, such as the `id` of `/merchants/$id`. */
export const useParam = (name: string): string => (useParams({ strict: false }) as Filters)[name] ?? '';

/** Returns a function that replaces the parameters; those that are empty are left out. */
export function useChangeFilters(): (filters: Filters, options?: { replace: boolean }) => void {
  const navigate = useNavigate();
  return (filters, options) => {
    const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value));
    void navigate({ to: '.', search: given as never, ...options });
  };
}
