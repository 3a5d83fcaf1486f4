import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { ApiProblem } from '../api.ts';
import { useApp } from '../ui/app.tsx';
import type { Receipt } from './receipt.tsx';
import { type Given, onSales, type Sale, sendSale, storedSales } from './sales.ts';

/** The merchant of the person who is signed in. */
export const useMerchantId = (): string => useApp().session?.user.merchantId ?? '';

/** The sales of this browser, newest first, as they are now. */
export function useSales(): readonly Sale[] {
  const merchantId = useMerchantId();
  return JSON.parse(useSyncExternalStore(onSales, () => storedSales(merchantId)));
}

/**
 * Returns the reference of the sale of a form, which is made before the first attempt. Whatever a form sends
 * twice is one sale.
 */
export const useReference = () => useState(() => `till-${crypto.randomUUID()}`)[0];

/** A sale that is about to be sent. */
export const newSale = (sale: Omit<Sale, 'sentAt' | 'state'>): Sale => ({
  ...sale,
  sentAt: new Date().toISOString(),
  state: 'sent',
});

/**
 * Sends sales, one at a time, until each has an outcome. A page that is left stops sending.
 * @param onEnd takes the receipt; undefined if the outcome is unknown
 */
export function useSending(onEnd: (receipt: Receipt | undefined) => void) {
  const { isSignedOut } = useApp();
  const merchantId = useMerchantId();
  const client = useQueryClient();
  const signedOut = useRef(isSignedOut);
  const stop = useRef(new AbortController());
  const [isLost, setLost] = useState(false);
  // The next key may come before the form is drawn as busy.
  const isBusy = useRef(false);
  useEffect(() => {
    signedOut.current = isSignedOut;
  }, [isSignedOut]);
  useEffect(() => () => stop.current.abort(), []);
  const { mutate, data, error, isPending, reset } = useMutation({
    mutationFn: async ({ sale, given }: { sale: Sale; given: Given }) => {
      stop.current = new AbortController();
      const course = {
        stop: stop.current.signal,
        isSignedIn: () => !signedOut.current,
        onLost: () => setLost(true),
      };
      const receipt = await sendSale(merchantId, sale, given, course);
      return { receipt };
    },
    onSuccess: ({ receipt }) => {
      onEnd(receipt);
      void client.invalidateQueries();
    },
    onSettled: () => {
      isBusy.current = false;
      setLost(false);
    },
  });
  return {
    send(sale: Sale, given: Given) {
      if (isBusy.current) return;
      isBusy.current = true;
      mutate({ sale, given });
    },
    /** Stops sending. The sale is then one of the open sales. */
    setAside: () => stop.current.abort(),
    reset,
    isPending,
    /** Whether an attempt had no answer. */
    isLost,
    isAside: data !== undefined && data.receipt === undefined,
    /** Why the sale was refused; null also if the browser stores nothing. */
    problem: error instanceof ApiProblem ? error : null,
    isWithoutStore: error !== null && !(error instanceof ApiProblem),
  };
}

export type Sending = ReturnType<typeof useSending>;
