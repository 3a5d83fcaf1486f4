import { useEffect, useState } from 'react';

/**
 * Whether somebody has moved the pointer, or pressed a key or a button, in this page. What only follows from
 * that is loaded then.
 */
export function useAtWork(): boolean {
  const [isAtWork, setAtWork] = useState(false);
  useEffect(() => {
    const listening = new AbortController();
    // Not at once: a field that is drawn before React has seen its input loses what was typed.
    const begin = () => setTimeout(setAtWork, 0, true);
    for (const kind of ['keydown', 'pointermove', 'pointerdown', 'input'])
      addEventListener(kind, begin, { capture: true, once: true, signal: listening.signal });
    return () => listening.abort();
  }, []);
  return isAtWork;
}
