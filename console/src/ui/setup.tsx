import { Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from './actions.tsx';
import { Icon } from './icons.tsx';
import { useMerchants } from './names.ts';
import { Panel } from './parts.tsx';

type Setup = Answer<'setup.show'>;
type Step = keyof Setup;

/** The steps until an installation is in use and safe. The card disappears when all of them are done. */
export function SetupList() {
  const { setup: texts } = useTexts();
  const { data: setup } = useQuery({
    queryKey: ['setup'],
    queryFn: () => get<Setup>('/setup'),
    refetchInterval: ({ state }) => state.data && !isDone(state.data) && 60_000,
    // People come back from the page on which they took a step.
    staleTime: 0,
    retry: false,
  });
  const isShown = setup !== undefined && !isDone(setup);
  const [merchant] = useMerchants(isShown && setup.merchant).merchants;
  if (!isShown) return null;
  const steps = Object.entries(setup) as [Step, boolean][];
  const done = steps.filter(([, isStepDone]) => isStepDone).length;
  return (
    <Panel title={texts.title} aside={<span className="quiet">{texts.progress(done, steps.length)}</span>}>
      <ol className="plain-list">
        {steps.map(([step, isStepDone]) =>
          isStepDone ? (
            <li key={step} className="line quiet">
              {texts.steps[step].title}
              <span className="ok">
                <Icon name="approvals" size={16} /> {texts.done}
              </span>
            </li>
          ) : (
            <OpenStep key={step} step={step} merchantId={merchant && String(merchant['id'])} />
          ),
        )}
      </ol>
    </Panel>
  );
}

const isDone = (setup: Setup) => Object.values(setup).every(Boolean);

function OpenStep({ step, merchantId }: { step: Step; merchantId: string | undefined }) {
  const { steps, report } = useTexts().setup;
  const { title, text } = steps[step];
  return (
    <li className="line">
      <span>
        {step === 'backup' ? (
          <b>{title}</b>
        ) : (
          <Anchor component={Link} to={placeOf(step, merchantId)}>
            {title}
          </Anchor>
        )}
        <small className="quiet">{text}</small>
      </span>
      {step === 'backup' && <Actions acts={[{ name: 'backup.note', label: report }]} />}
    </li>
  );
}

/** Returns the page on which a step is done: for what a merchant needs, the page of the first one. */
function placeOf(step: Exclude<Step, 'backup'>, merchantId: string | undefined): string {
  const merchant = merchantId === undefined ? '/merchants' : `/merchants/${merchantId}`;
  const tab = (name: string) => (merchantId === undefined ? merchant : `${merchant}?tab=${name}`);
  const places = {
    person: '/users',
    product: '/products',
    merchant: '/merchants',
    key: tab('keys'),
    float: merchant,
    redemption: tab('users'),
    alert: '/webhooks',
  };
  return places[step];
}
