import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Suspense, useState } from 'react';
import type { Answer, Listed } from '../answers.ts';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Act } from './act.ts';
import { ActionDialog, loadDialog } from './actions.tsx';
import { useApp } from './app.tsx';
import { Icon } from './icons.tsx';
import type { Item } from './item.ts';
import { useWhenLoaded } from './loaded.ts';
import { useMerchants, useProducts } from './names.ts';
import { Panel } from './parts.tsx';
import { pageOf } from './places.ts';
import { useWords } from './words.ts';

type Setup = Answer<'setup.show'>;
type Step = keyof Setup;

/**
 * The steps until an installation is in use and safe, which disappear when all of them are done, and their
 * dialog, which belongs to no place: once the installation is in use, its figures come before the steps.
 */
export function useSetup(isOffered: boolean) {
  const { data: setup } = useQuery({
    queryKey: ['setup'],
    enabled: isOffered,
    queryFn: () => get<Setup>('/setup'),
    refetchInterval: ({ state }) => state.data && !isDone(state.data) && 60_000,
    // People come back from the page on which they took a step.
    staleTime: 0,
    retry: false,
  });
  const isShown = setup !== undefined && !isDone(setup);
  const [merchant] = useMerchants(isShown && setup.merchant).merchants;
  // The first merchant is for the product that was made before it, if there is one.
  const [product, ...others] = useProducts(isShown && !setup.merchant).filter(
    ({ code }) => code !== 'DEFAULT',
  );
  const made = others.length === 0 ? product?.code : undefined;
  // A dialog may show a secret after its step is done, so it belongs to no step.
  const [act, setAct] = useState<Act>();
  return {
    isInUse: setup?.redemption,
    steps: isShown && <Steps of={setup} merchant={merchant} product={made} open={setAct} />,
    dialog: <Suspense>{act && <ActionDialog act={act} close={() => setAct(undefined)} />}</Suspense>,
  };
}

const isDone = (setup: Setup) => Object.values(setup).every(Boolean);

type Opening = {
  readonly merchant: Listed<'merchant.list'> | undefined;
  readonly product: string | undefined;
  open(act: Act): void;
};

function Steps({ of: setup, ...opening }: Opening & { of: Setup }) {
  const { setup: texts } = useTexts();
  const steps = Object.entries(setup) as [Step, boolean][];
  const done = steps.filter(([, isStepDone]) => isStepDone);
  return (
    <Panel
      title={texts.title}
      aside={<span className="quiet">{texts.progress(done.length, steps.length)}</span>}
    >
      <ol className="plain-list">
        {steps.map(([step, isStepDone]) => !isStepDone && <OpenStep key={step} step={step} {...opening} />)}
        {done.length > 0 && (
          <li className="line quiet">
            <small>{done.map(([step]) => texts.steps[step].title).join(', ')}</small>
            <span className="ok">
              <Icon name="approvals" size={16} /> {texts.done}
            </span>
          </li>
        )}
      </ol>
    </Panel>
  );
}

/** The operations that take the steps. Whoever redeems the first voucher has to be invited. */
const OPERATIONS: Partial<Record<Step, string>> = {
  person: 'user.invite',
  product: 'product.create',
  merchant: 'merchant.create',
  key: 'api-key.create',
  float: 'float.top-up',
  vouchers: 'batch.generate',
  redemption: 'user.invite',
  backup: 'backup.note',
  alert: 'webhook.add',
};
/** What a merchant needs comes after the first one was created. */
const OF_MERCHANT: readonly Step[] = ['key', 'float', 'vouchers', 'redemption'];

function OpenStep({ step, merchant, product, open }: Opening & { step: Step }) {
  const { steps, later } = useTexts().setup;
  const { title, text } = steps[step];
  const { offers } = useApp();
  const words = useWords();
  const whenLoaded = useWhenLoaded();
  const navigate = useNavigate();
  const isOfMerchant = OF_MERCHANT.includes(step);
  const isLater = isOfMerchant && merchant === undefined;
  const name = OPERATIONS[step];
  const ofMerchant = isOfMerchant &&
    merchant && { given: { merchantId: merchant.id }, effect: merchant.name };
  const ofStep = {
    // The order is printed on its page.
    ...(step === 'vouchers' && {
      onDone: (made: Item) => void navigate({ to: pageOf('batch.list')?.(made) }),
    }),
    ...(step === 'merchant' && product && { initial: { product } }),
    ...(step === 'redemption' && { initial: { roles: ['cashier'] } }),
  };
  const act = name && offers(name) && { name, ...ofMerchant, ...ofStep };
  return (
    <li className="line">
      <span>
        <b>{title}</b>
        <small className="quiet">{text}</small>
      </span>
      {act && isLater && <small className="quiet">{later}</small>}
      {act && !isLater && (
        <Button variant="default" onClick={() => whenLoaded(loadDialog, () => open(act))}>
          {words.action(act.name)}
        </Button>
      )}
    </li>
  );
}
