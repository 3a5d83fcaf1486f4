import type { Answer } from '../answers.ts';
import { useParam } from '../ui/address.ts';
import { useFormat } from '../ui/format.ts';
import { ListPage, PageHead } from '../ui/page.tsx';
import { Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields } from '../ui/value.tsx';

export function Screen() {
  return <ListPage name="products" create="product.create" of="product.list" />;
}

type Product = Answer<'product.show'>;

export function Thing() {
  const format = useFormat();
  const code = useParam('code');
  const path = `/products/${encodeURIComponent(code)}`;
  const { thing, instead } = useThing<Product>(path);
  if (!thing) return instead;
  const given = { code };
  const { name, minValue, maxValue, currency } = thing;
  const effect = `${name}: ${format.money(minValue, currency)} – ${format.money(maxValue, currency)}`;
  return (
    <>
      <PageHead
        back="products"
        title={name}
        state={thing.onSale ? 'on sale' : 'off sale'}
        note={<Copyable text={code} />}
        acts={[
          { name: 'product.set', given, current: thing, source: path },
          thing.onSale
            ? { name: 'product.off-sale', given, effect, isDanger: true }
            : { name: 'product.on-sale', given, effect },
        ]}
        of="product.show"
        given={given}
      />
      <Panel padded>
        <Fields of={thing} without={['code', 'name', 'onSale']} />
      </Panel>
    </>
  );
}
