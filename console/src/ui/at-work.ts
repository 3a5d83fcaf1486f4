import { useEffect, useState } from 'react';

/** Whether somebody has pressed a key or a button in this page. What only follows from that is loaded then. */
export function useAtWork(): boolean {
  const [isAtWork, setAtWork] = useState(false);
  useEffect(() => {
    const listening = new AbortController();
    for (const kind of ['keydown', 'pointerdown', 'input'])
      addEventListener(kind, () => setAtWork(true), { capture: true, once: true, signal: listening.signal });
    return () => listening.abort();
  }, []);
  return isAtWork;
}
