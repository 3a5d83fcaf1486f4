import { useParams } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useFormat } from '../ui/format.ts';
import { Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields, State } from '../ui/value.tsx';

type Product = Answer<'product.show'>;

export function Screen() {
  const texts = useTexts();
  const format = useFormat();
  const { code = '' } = useParams({ strict: false }) as { code?: string };
  const path = `/products/${encodeURIComponent(code)}`;
  const { thing, instead } = useThing<Product>(path);
  if (!thing) return instead;
  const { name, minValue, maxValue, currency } = thing;
  const effect = `${name}: ${format.money(minValue, currency)} – ${format.money(maxValue, currency)}`;
  return (
    <>
      <Head
        back={{ to: '/products', label: texts.nav.products }}
        name={name}
        title={
          <>
            <bdi>{name}</bdi> <State name={thing['onSale'] ? 'on sale' : 'off sale'} />
          </>
        }
        note={<Copyable text={code} />}
      >
        <Actions
          acts={[
            { name: 'product.set', given: { code }, current: thing, source: path },
            thing['onSale'] === true
              ? { name: 'product.off-sale', given: { code }, effect, isDanger: true }
              : { name: 'product.on-sale', given: { code }, effect },
          ]}
        />
        <Same name="product.show" given={{ code }} />
      </Head>
      <Panel padded>
        <Fields of={thing} without={['code', 'name', 'onSale']} />
      </Panel>
    </>
  );
}
