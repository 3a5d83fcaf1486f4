import { Anchor, Button, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import type { PeopleAnswer } from '../answers.ts';
import { send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Problem, submits } from './parts.tsx';
import { canUsePasskeys, signInByPasskey } from './passkey.ts';
import { PasswordField } from './password.tsx';
import { ProviderWindow, useSingleSignOn } from './single-sign-on.tsx';
import { useValues } from './values.ts';

const MerchantSelect = lazy(async () => ({
  default: (await import('./merchant-select.tsx')).MerchantSelect,
}));

type Answer = PeopleAnswer<'POST /session'>;
type Step = 'password' | 'totp' | 'recovery';

/**
 * Single sign-on, a passkey, or a password and then a second factor.
 * @param email of the person whose session has ended, who signs in again
 * @param startsAt `totp` for a person who comes back from the identity provider without a second factor
 * @param onSingleSignOn leaves this page; without it, the identity provider opens in another window
 */
export function SignInForm({
  email = '',
  startsAt = 'password',
  onSingleSignOn,
  onDone,
}: {
  email?: string;
  startsAt?: Step;
  onSingleSignOn?(): void;
  onDone(): void;
}) {
  const texts = useTexts().signIn;
  const client = useQueryClient();
  const hasProvider = useSingleSignOn();
  const [step, setStep] = useState<Step>(startsAt);
  const { values, inputOf } = useValues({ email, password: '', totp: '', recoveryCode: '' });
  // The merchants with an account of this address and password, if there are several.
  const [merchants, setMerchants] = useState<NonNullable<Answer['merchants']>>([]);
  const [merchantId, setMerchantId] = useState('');

  const done = () => client.invalidateQueries().then(onDone);
  const { mutate, error, isPending } = useMutation({
    mutationFn: (enter: () => Promise<Answer>) => enter(),
    onSuccess: ({ next, merchants: several = [] }) => {
      if (next === 'second-factor') return setStep('totp');
      return next === 'merchant' ? setMerchants(several) : done();
    },
  });
  const submit = () => {
    const { email: typed, password, totp, recoveryCode } = values;
    const body =
      step === 'password'
        ? { email: typed, password, ...(merchantId && { merchantId }) }
        : step === 'totp'
          ? { totp: totp.replace(/\s/g, '') }
          : { recoveryCode };
    mutate(() => send<Answer>('POST', '/session', { body }));
  };
  return (
    <form onSubmit={submits(submit)}>
      <Stack>
        {step === 'password' && hasProvider && (
          <>
            {onSingleSignOn ? (
              <Button variant="default" size="sm" onClick={onSingleSignOn}>
                {texts.singleSignOn}
              </Button>
            ) : (
              <ProviderWindow purpose="sign-in" onDone={done} />
            )}
            <Text size="sm" className="quiet" ta="center">
              {texts.or}
            </Text>
          </>
        )}
        {step === 'password' && (
          <>
            <TextInput
              label={texts.email}
              type="email"
              required
              autoComplete="username"
              readOnly={email !== ''}
              autoFocus={email === ''}
              {...inputOf('email')}
            />
            <PasswordField
              label={texts.password}
              required
              autoComplete="current-password"
              data-autofocus
              {...inputOf('password')}
            />
            {merchants.length > 0 && (
              <Suspense>
                <MerchantSelect
                  label={texts.merchant}
                  merchants={merchants}
                  value={merchantId}
                  onChange={setMerchantId}
                />
              </Suspense>
            )}
          </>
        )}
        {step === 'totp' && (
          <TextInput
            label={texts.factor}
            required
            inputMode="numeric"
            autoComplete="one-time-code"
            autoFocus
            {...inputOf('totp')}
          />
        )}
        {step === 'recovery' && (
          <TextInput label={texts.recoveryCode} required autoFocus {...inputOf('recoveryCode')} />
        )}
        {error && <Problem error={error} />}
        <Button type="submit" size="sm" loading={isPending}>
          {texts.next}
        </Button>
        <Text size="sm" component="div">
          {canUsePasskeys() && (
            <Anchor component="button" type="button" size="sm" onClick={() => mutate(signInByPasskey)}>
              {texts.passkey}
            </Anchor>
          )}
          {canUsePasskeys() && step !== 'password' && ' · '}
          {step !== 'password' && (
            <Anchor
              component="button"
              type="button"
              size="sm"
              onClick={() => setStep(step === 'totp' ? 'recovery' : 'totp')}
            >
              {step === 'totp' ? texts.recovery : texts.useTotp}
            </Anchor>
          )}
        </Text>
      </Stack>
    </form>
  );
}
