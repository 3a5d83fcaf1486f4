import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { findings as german } from '../i18n/de.findings.ts';
import { useLanguage, useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { INSTALLATION } from '../ui/installation.ts';
import { List, Rows } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Busy, Empty, Panel, Problem } from '../ui/parts.tsx';
import { useWords } from '../ui/words.ts';

/** The state of the installation, jobs, and the keys that seal codes and PINs. */
export function Screen() {
  const texts = useTexts();
  const { action } = useWords();
  const navigate = useNavigate();
  const { offers } = useApp();
  return (
    <>
      <PageHead
        title={texts.nav.system}
        primary
        acts={[{ name: 'ledger.reconcile', onDone: ({ id }) => void navigate({ to: `/jobs/${id}` }) }]}
        of="ledger.reconcile"
      />
      <Stack gap="lg">
        {offers('installation.check') && <Installation />}
        {offers('job.list') && (
          <List
            title={texts.system.jobs}
            of="job.list"
            columns={['createdAt', 'operation', 'state', 'createdBy', 'done', 'total']}
            cell={(name, item) => (name === 'operation' ? action(String(item[name])) : undefined)}
            empty={<Empty text={texts.empty.jobs} />}
          />
        )}
        {offers('keyring.show') && (
          <List
            title={texts.system.keyRing}
            of="keyring.show"
            narrow={['keyId', 'state', 'vouchers']}
            brief
          />
        )}
      </Stack>
    </>
  );
}

/** What needs action comes first. */
const URGENCY: readonly string[] = ['failure', 'warning', 'ok'];

type Finding = Answer<'installation.check'>['findings'][number];

/** Returns what the service says in English in the language of the page: by its name, with its values. */
function useWritten() {
  const { language } = useLanguage();
  const format = useFormat();
  return (text: string | null, code: string | null, values: Finding['values']) => {
    const sentence = language === 'de' ? german[code ?? ''] : undefined;
    const filled = sentence?.replace(/\{(\w+)\}/g, (_all, name: string) => {
      const value = values[name] ?? '';
      return typeof value === 'number' ? format.number(value) : value;
    });
    return (filled ?? text ?? '–').replaceAll('`', '');
  };
}

function Installation() {
  const { installation: title } = useTexts().system;
  const { kind } = useWords();
  const written = useWritten();
  const { data, error, refetch } = useQuery(INSTALLATION);
  const found = data?.findings.toSorted(
    (one, other) => URGENCY.indexOf(one.state) - URGENCY.indexOf(other.state),
  );
  return (
    <Panel title={title}>
      {error && <Problem error={error} retry={refetch} />}
      {!data && !error && <Busy />}
      {found && (
        <Rows
          items={found}
          columns={['check', 'state', 'found']}
          cell={(name, item) => {
            const { check, found: says, foundCode, advice, adviceCode, values } = item as Finding;
            if (name === 'check') return kind(check, name);
            if (name !== 'found') return undefined;
            return (
              <>
                <div className="sentence">{written(says, foundCode, values)}</div>
                {advice !== null && <small className="below">{written(advice, adviceCode, values)}</small>}
              </>
            );
          }}
        />
      )}
    </Panel>
  );
}
