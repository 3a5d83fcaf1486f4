/** How far something is: a line on stderr that is drawn again and again, and nothing at all where stderr is no terminal. */
export type Progress = { update(done: number): void; stop(): void };

const NONE: Progress = { update() {}, stop() {} };

/** Enough to look alive. */
const REDRAW_MS = 200;
const WIDTH = 30;

/**
 * @param label what is going on
 * @param total how many there will be; without it the bar only moves
 */
export function showProgress(label: string, total?: number): Progress {
  const { stderr } = process;
  if (!stderr.isTTY) return NONE;
  const startedAt = performance.now();
  let done = 0;
  let drawings = 0;
  const draw = () => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000);
    const bar = total === undefined ? moving(drawings++) : filled(done / total);
    const count = total === undefined ? (done === 0 ? '' : `  ${done}`) : `  ${done} of ${total}`;
    stderr.write(`\r\x1b[2K${label} ${bar}${count}  ${seconds} s`);
  };
  draw();
  const timer = setInterval(draw, REDRAW_MS);
  return {
    update(now) {
      done = now;
    },
    stop() {
      clearInterval(timer);
      stderr.write('\r\x1b[2K');
    },
  };
}

function filled(share: number): string {
  const full = Math.min(WIDTH, Math.floor(share * WIDTH));
  return `[${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}]`;
}

function moving(step: number): string {
  const at = step % (WIDTH - 2);
  return `[${'.'.repeat(at)}###${'.'.repeat(WIDTH - 3 - at)}]`;
}
