import type { Service } from '../context.ts';
import { listMerchants } from '../merchants/merchants.ts';
import { DEMO_OWNER, type DemoPerson, inviteDemoPerson } from '../people/demo.ts';
import { doorOf } from '../people/sessions.ts';
import { demoActor, MERCHANTS } from './demo.ts';

/** The people of the demo with whom the owner can show what needs two of them. */
const COLLEAGUES: readonly DemoPerson[] = [
  { email: 'finance@demo.invalid', name: 'Demo finance', roles: ['finance'], merchantId: null },
  { email: 'support@demo.invalid', name: 'Demo support', roles: ['support'], merchantId: null },
];

const [{ name: MERCHANT }] = MERCHANTS;

/**
 * Makes links that sign in the people of the demo, each once, from this machine only. A database without the
 * demo's history is not the demo's own. It gets no second person, since everything that needs approval would
 * need two people from then on.
 * @param baseUrl the address for browsers
 * @returns lines to print
 */
export async function demoLinks(service: Service, baseUrl: string): Promise<string[]> {
  const found = await listMerchants(service.db, 0, 100, MERCHANT);
  const merchant = found.find(({ name }) => name === MERCHANT);
  const colleagues = merchant
    ? [...COLLEAGUES, { ...DEMO_OWNER, name: `Owner of ${MERCHANT}`, merchantId: merchant.id }]
    : [];
  const links = [];
  for (const person of [DEMO_OWNER, ...colleagues]) {
    const token = await inviteDemoPerson({ service, actor: demoActor() }, person);
    const app = doorOf(person.merchantId) === 'operator' ? 'console' : 'portal';
    links.push(`  ${`${person.name}, ${app}`.padEnd(30)}${baseUrl}/${app}/sign-in#${token}`);
  }
  return [
    'These links sign in once, from this machine, within an hour. Use a browser profile for each person:',
    '',
    ...links,
  ];
}
