import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from './app.tsx';
import { Panel } from './parts.tsx';

/** The pages of the tour, by the step that a text of the same name explains. */
const STEPS = {
  search: '/vouchers?state=BLOCKED',
  float: '/merchants',
  owed: '/books/reports/liability',
  pay: '/settlements?state=APPROVED',
  days: '/books',
} as const;

/** What the demo is, and what to look at first. Only its people have addresses of this domain. */
export function DemoTour() {
  const { title, about, steps } = useTexts().demo;
  const isDemo = useApp().session?.user.email.endsWith('@demo.invalid');
  if (!isDemo) return null;
  return (
    <Panel title={title}>
      <ul className="plain-list">
        <li>{about}</li>
        {(Object.keys(STEPS) as (keyof typeof STEPS)[]).map((step) => (
          <li key={step}>
            <Anchor component={Link} to={STEPS[step]}>
              {steps[step].title}
            </Anchor>{' '}
            <span className="quiet">{steps[step].text}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
