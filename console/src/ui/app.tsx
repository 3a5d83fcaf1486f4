import { useQuery } from '@tanstack/react-query';
import { createContext, type ReactNode, use } from 'react';
import { type ApiProblem, type Door, get } from '../api.ts';
import { type Operation, useOperations } from '../operations.ts';

export type Session = {
  readonly id: string;
  readonly user: {
    readonly id: string;
    readonly email: string;
    readonly name: string;
    readonly roles: readonly string[];
    readonly merchantId: string | null;
  };
  readonly expiresAt: string;
};

type App = {
  readonly door: Door;
  readonly session: Session | undefined;
  readonly isSignedOut: boolean;
  readonly operations: ReadonlyMap<string, Operation> | undefined;
  /** Whether the roles of the person permit an operation. The service decides again. */
  permits(operation: Operation): boolean;
  /** Whether the service offers an operation to this person. */
  offers(name: string): boolean;
};

const Context = createContext<App | undefined>(undefined);

export function AppProvider({ door, children }: { readonly door: Door; readonly children: ReactNode }) {
  const { data: session, error } = useQuery<Session, ApiProblem>({
    queryKey: ['session'],
    queryFn: () => get<Session>('/session'),
    retry: false,
    refetchInterval: 60_000,
  });
  const operations = useOperations(door);
  const permits = ({ roles }: Operation) =>
    roles.length === 0 || roles.some((role) => session?.user.roles.includes(role) ?? false);
  const offers = (name: string) => {
    const operation = operations?.get(name);
    return operation !== undefined && permits(operation);
  };
  return (
    <Context value={{ door, session, isSignedOut: error?.status === 401, operations, permits, offers }}>
      {children}
    </Context>
  );
}

export function useApp(): App {
  const app = use(Context);
  if (!app) throw new Error('useApp outside of AppProvider');
  return app;
}
