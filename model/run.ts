/**
 * `npm run model [-- WORD]`: visits every state of the models of the protocols, then of each model with a
 * planted fault, and prints how the fault does harm (docs/explanation/model.md).
 */
import { PROTOCOLS } from './protocols.ts';

const [word = ''] = process.argv.slice(2);
const write = (line: string) => process.stdout.write(`${line}\n`);
let failures = 0;

for (const { title, faults, check } of PROTOCOLS.filter((each) => each.title.includes(word))) {
  write(`\n${title}`);
  for (const fault of [undefined, ...Object.keys(faults)]) {
    const startedAt = performance.now();
    const { states, broken } = check(fault);
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    write(`  ${fault ? faults[fault] : 'as it is'}: ${states} states in ${seconds} s`);
    if ((broken === undefined) !== (fault === undefined)) failures++;
    if (broken) write(`    broken: ${broken.invariant}`);
    for (const [at, says] of (broken?.trace ?? []).entries()) write(`    ${at + 1}. ${says}`);
    if (fault && !broken) write('    NOT FOUND');
  }
}
if (failures > 0) throw new Error(`${failures} results are not the expected ones`);
