import type { CrowdsResult } from './crowds.ts';
import { cellsOf, TIMES, table, whole } from './figures.ts';
import type { OverloadResult } from './overload.ts';

/** The section on overload in docs/explanation/performance.md: a heading and its text. */

export function tellOverload(result: OverloadResult): readonly [string, string] {
  const {
    greatest,
    offeredPerSecond,
    unsentPerSecond,
    accepted,
    later,
    refused,
    generator,
    light,
    memoryMb,
  } = result;
  const rows = [
    ['the greatest load, 128 clients', ...cellsOf(greatest)],
    ['five times as much: accepted', ...cellsOf(accepted)],
    ['the same, after the first second', ...cellsOf(later)],
    ['five times as much: refused (503)', ...cellsOf(refused)],
  ];
  return [
    'Beyond the greatest load',
    `Redemptions of one merchant by callers who do not wait for each other (2,000 connections), five times as many as can be served: ${whole(offeredPerSecond)} a second. Times count from when a
request was due. Service, database and load share the cores: the generator alone took ${generator.cores.toFixed(2)} of them, so less is left to accept with than at the greatest load.
${whole(unsentPerSecond)} a second were not sent, since every client still waited for an answer. Refused without Retry-After: ${result.withoutRetryAfter}; anything but accepted or refused: ${result.broken}.

${table(['load', 'a second', ...TIMES], rows)}

Another merchant beside it (200 a second, windows of 250 ms): **${light.refused} of ${whole(light.asked)}** refused; p99 ${light.beforeP99Ms.toFixed(1)} ms before, ${light.besideP99Ms.toFixed(1)} ms beside the flood, as before
${light.backMs === 0 ? 'from the first whole window after its end on' : `**${whole(light.backMs)} ms** after its end`}. Memory of the service: ${whole(memoryMb.before)} MB before, ${whole(memoryMb.most)} MB at most, ${whole(memoryMb.after)} MB after.`,
  ];
}

export function tellCrowds(crowds: CrowdsResult): readonly [string, string] {
  const rows = crowds.map(({ name, honest, crowdCores, broken, memoryMb }) => [
    name,
    ...cellsOf(honest),
    String(broken),
    crowdCores.toFixed(2),
    whole(memoryMb),
  ]);
  const head = ['beside', 'a second', ...TIMES, 'failed', 'cores of the crowd', 'memory MB'];
  return [
    'Beside a crowd',
    `Redemptions by 32 honest clients, beside a crowd that takes a server's time and memory for nothing.
What the crowd's own process takes of the cores is shown: the service lacks it.

${table(head, rows)}`,
  ];
}
