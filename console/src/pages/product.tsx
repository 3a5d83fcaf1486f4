import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { get } from '../api.ts';
import { Action } from '../ui/action.tsx';
import { Busy, Fields, Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { code = '' } = useParams({ strict: false }) as { code?: string };
  const { data, error, refetch } = useQuery({
    queryKey: ['product', code],
    queryFn: () => get<Record<string, unknown>>(`/products/${code}`),
  });
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <Busy />;
  return (
    <>
      <Head title={String(data['name'])} note={code}>
        <Action name="product.set" label="Change" given={{ code }} effect={code} />
        {data['onSale'] === true ? (
          <Action name="product.off-sale" label="Take off sale" danger given={{ code }} effect={code} />
        ) : (
          <Action name="product.on-sale" label="Put on sale" given={{ code }} effect={code} />
        )}
        <Same name="product.show" given={{ code }} />
      </Head>
      <Panel>
        <div style={{ padding: 16 }}>
          <Fields of={data} />
        </div>
      </Panel>
    </>
  );
}
