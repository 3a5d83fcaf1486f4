import { Button, Group } from '@mantine/core';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useParam } from '../ui/address.ts';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/item.ts';
import { useItems } from '../ui/items.ts';
import { Rows } from '../ui/list.tsx';
import { ListPage, PageHead } from '../ui/page.tsx';
import { Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields } from '../ui/value.tsx';

export function Screen() {
  return (
    <>
      <ListPage name="products" create="product.create" of="product.list">
        <Actions acts={[{ name: 'design.set' }]} />
      </ListPage>
      <Designs />
    </>
  );
}

/** The designs of cards, if there are some. */
function Designs() {
  const { designs, preview } = useTexts().cards;
  const items = useItems<Item>('/designs') ?? [];
  if (items.length === 0) return null;
  const actions = (current: Item) => {
    const name = String(current['name']);
    const given = { name };
    return (
      <Group gap={8} wrap="nowrap">
        <Button variant="default" component="a" href={`/operator/v1/designs/${name}/preview`}>
          {preview}
        </Button>
        <Actions
          shown={0}
          of={name}
          acts={[
            { name: 'design.set', given, current },
            { name: 'design.remove', given, isDanger: true },
          ]}
        />
      </Group>
    );
  };
  return (
    <Panel title={designs}>
      <Rows
        items={items}
        columns={['name', 'title', 'subtitle', 'language', 'background', 'color', 'hasLogo']}
        narrow={['name', 'title']}
        actions={actions}
      />
    </Panel>
  );
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
        <Fields of={thing} answer="product.show" without={['code', 'name', 'onSale']} />
      </Panel>
    </>
  );
}
