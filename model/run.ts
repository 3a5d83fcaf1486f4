import { Command } from 'commander';
import { PROTOCOLS } from './protocols.ts';

const program = new Command('npm run model --')
  .description(
    'Visit every state of the models of the protocols, also with planted faults, and print their harm.',
  )
  .argument('[word]', 'only protocols whose title holds it')
  .parse();
const [word = ''] = program.args;
const protocols = PROTOCOLS.filter(({ title }) => title.includes(word));
if (protocols.length === 0) program.error(`no protocol has "${word}" in its title`);
const write = (line: string) => process.stdout.write(`${line}\n`);
let failures = 0;

for (const { title, faults, check } of protocols) {
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
