import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { started } from '../test/support/leave-nothing.ts';
import { pause } from './figures.ts';

/** The resources of a process and its children, from /proc; undefined if there is none. */
export type Usage = { readonly cpuMs: number; readonly memoryMb: number };

/** Measures how many cores are in use, within three seconds. */
export async function coresInUse(): Promise<number> {
  const busyMs = () =>
    cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
  const [before, since] = [busyMs(), performance.now()];
  await pause(3_000);
  return (busyMs() - before) / (performance.now() - since);
}

/** The frequency of the clock in which Linux counts processor time, on every machine. */
const TICK_MS = 10;

type Entry = { readonly pid: number; readonly parent: number; readonly cpuMs: number };

/** Processor time so far, including ended children, and memory, with shared pages counted once. */
export async function usageOf(pid: number): Promise<Usage | undefined> {
  try {
    const all = (
      await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(entryOf))
    ).filter((entry) => entry !== undefined);
    const family = descend(all, pid);
    const memory = await Promise.all(family.map((each) => memoryOf(each.pid)));
    return {
      cpuMs: family.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
      memoryMb: memory.reduce((sum, each) => sum + each, 0) / 1024,
    };
  } catch {
    return undefined;
  }
}

/**
 * The resident memory of a process without its children from now on, in megabytes, sampled ten times a
 * second.
 */
export function watchMemory(pid: number) {
  const look = async () => {
    const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1024;
  };
  let most = 0;
  const before = look();
  const timer = setInterval(async () => {
    most = Math.max(most, await look());
  }, 100);
  return {
    now: look,
    async stop() {
      clearInterval(timer);
      return { beforeMb: await before, mostMb: Math.max(most, await look()) };
    },
  };
}

function descend(all: readonly Entry[], pid: number): Entry[] {
  const own = all.filter((entry) => entry.pid === pid);
  const children = all.filter(({ parent }) => parent === pid);
  return [...own, ...children.flatMap((child) => descend(all, child.pid))];
}

async function entryOf(name: string): Promise<Entry | undefined> {
  const text = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // The second field is the program's name in parentheses and may hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
  return { pid: Number(name), parent: Number(fields[1]), cpuMs: ticks * TICK_MS };
}

async function memoryOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  return Number(/^Pss: +(\d+) kB/m.exec(text)?.[1] ?? 0);
}

/** A program that has ended: its time, the processor time of it and its children, and its greatest memory. */
export type Watched = { readonly seconds: number; readonly cpuSeconds: number; readonly mostMb: number };

const LOOK_MS = 50;

/** Runs a program until it ends, and looks at its usage meanwhile. @throws Error if it fails */
export async function watchProgram(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Watched> {
  const since = performance.now();
  const child = started(() => spawn(command, args, { env, stdio: ['ignore', 'inherit', 'inherit'] }));
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} cannot be started`);
  let [cpuMs, mostKb] = [0, 0];
  while (child.exitCode === null && child.signalCode === null) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    mostKb = Math.max(mostKb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    cpuMs = Math.max(cpuMs, (await entryOf(String(pid)))?.cpuMs ?? 0);
    await pause(LOOK_MS);
  }
  if (child.exitCode !== 0) throw new Error(`${command} ended with status ${child.exitCode}`);
  const seconds = (performance.now() - since) / 1_000;
  return { seconds, cpuSeconds: cpuMs / 1_000, mostMb: Math.round(mostKb / 1_024) };
}
