import assert from 'node:assert/strict';
import { readdir, rm, stat } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { readName, SEGMENT, SPOOL } from '../../embedded/archive.ts';
import { Installation } from '../support/installation.ts';
import { archived } from '../support/log.ts';
import { typed } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** Restores from the archived log after the machine is lost. */

test('a lost machine is restored to its last second, or to a given time', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  await installation.serve();
  const { id } = await installation.json`merchant create --name Kiosk --float 100`;
  await installation.json`batch generate --merchant ${id} --quantity 5 --value 10 --wait`;
  await installation.json`backup create ${installation.at('backups')}`;
  await installation.topUp('after-1');
  const between = new Date();
  await installation.topUp('after-2');
  await archived(installation);
  await installation.lose();

  // All of it, from the backup, the archive, and the key ring that was kept elsewhere.
  const restored = await installation.json('restore', installation.at('backups'));
  assert.deepEqual(restored.forks, []);
  assert.ok(new Date(restored.lastTransactionAt) > between);
  assert.equal(await installation.balance(), 52);
  assert.equal((await installation.json('reconcile')).ok, true);

  // The service goes on, and its new log is archived beside the old one.
  await installation.serve();
  await installation.topUp('after-3');
  await archived(installation);
  await installation.lose();
  const future = ['restore', installation.at('backups'), '--to', '2099-01-01T00:00:00Z'];
  const { out } = await installation.run(future);
  assert.match(out, /The archived log ends there, before the time that was asked for/);
  assert.equal(await installation.balance(), 53);

  // To a time: later commits are left out, and the replaced database is kept.
  const to = between.toISOString();
  const earlier = await installation.json`restore ${installation.at('backups')} --to ${to} --replace`;
  assert.ok(new Date(earlier.lastTransactionAt) <= between);
  assert.equal(await installation.balance(), 51);
  assert.ok((await readdir(earlier.replaced)).includes('PG_VERSION'));
});

/** An installation that serves with an archive, and has a backup with a float of 100. */
async function backedUp(t: TestContext): Promise<Installation> {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  await installation.serve();
  await installation.json`merchant create --name Kiosk --float 100`;
  await installation.json`backup create ${installation.at('backups')} --with-keys`;
  return installation;
}

test('a restore says which earlier restore it follows, and can go back to what that left out', async (t) => {
  const installation = await backedUp(t);
  await installation.topUp('kept');
  const between = new Date().toISOString();
  await installation.topUp('left-out');
  await archived(installation);
  await installation.stop();
  const restore = (...options: string[]) =>
    installation.json`restore ${installation.at('backups')} --replace ${options}`;
  assert.deepEqual((await restore('--to', between)).forks, []);

  // From here on the archive holds another timeline, which later restores follow.
  await installation.serve();
  await installation.topUp('instead-1');
  await installation.topUp('instead-2');
  await archived(installation);
  await installation.stop();
  const { forks } = await restore();
  assert.deepEqual(
    forks.map(({ timeline }: { timeline: number }) => timeline),
    [1],
  );
  assert.ok(forks[0].leftOutFrom > between);
  assert.equal(await installation.balance(), 103);
  assert.deepEqual((await restore('--to', between)).forks, []);
  assert.equal(await installation.balance(), 101);
  assert.deepEqual((await restore('--timeline', '1')).forks, []);
  assert.equal(await installation.balance(), 102);
  const { out } = await installation.run(typed`restore ${installation.at('backups')} --replace`);
  assert.match(out, /An earlier restore is followed: .*\(from 20.*\) is left out\..*--timeline 1/);
  await installation.fails(
    /there is no timeline 9 in .*, which holds 1, 2: /,
    typed`restore ${installation.at('backups')} --replace --timeline 9`,
  );
});

test('a restored copy that is tried out changes nothing in the archive', async (t) => {
  const installation = await backedUp(t);
  const copy = {
    SCRIP_DATA_DIR: installation.at('copy'),
    SCRIP_ARCHIVE_DIR: '',
    SCRIP_KEYS_FILE: installation.at('data', 'keys'),
  };
  const { status, err } = await installation.run(['restore', installation.at('backups')], copy);
  assert.equal(status, 0, err);
  assert.equal((await installation.run(['reconcile'], copy)).status, 0);
  assert.equal((await installation.run(typed`books close`, copy)).status, 0);
  const ofCopy = (await readdir(installation.at('archive'))).filter((name) => name.startsWith('00000002'));
  assert.deepEqual(ofCopy, []);
  // What happens after that is not lost with the machine.
  await installation.topUp('after');
  await archived(installation);
  await installation.lose();
  await installation.json('restore', installation.at('backups'));
  assert.equal(await installation.balance(), 101);
});

test('a restore fails if a segment of the log is missing, and names the segment', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  await installation.serve();
  await installation.json`merchant create --name Kiosk --float 100`;
  await installation.json`backup create ${installation.at('first')} --with-keys`;
  await installation.json`backup create ${installation.at('second')} --with-keys`;
  // The backup has ended its segment. Without more, nothing would come after what is missing below.
  await installation.json`merchant create --name Later`;
  await archived(installation);
  // The pieces of an ended segment are removed once it is there as a whole.
  const tails = async () =>
    (await readdir(installation.at('archive'))).filter((name) => name.endsWith('.tail'));
  await until('the ended segments are sent', async () => (await tails()).length === 1);
  await installation.lose();
  // A file that the crash left unfinished is no segment.
  const names = await readdir(installation.at('archive'));
  const segments = names.filter((name) => SEGMENT.test(readName(name)?.file ?? '')).sort();
  await rm(installation.at('archive', segments.at(-1) ?? ''));
  await installation.fails(/lacks segment \d+, so what came after it.*put the file back/, [
    'restore',
    installation.at('first'),
  ]);
  await installation.fails(
    /lacks segment \d+, before 2099/,
    typed`restore ${installation.at('first')} --to 2099-01-01T00:00:00Z`,
  );
  await installation.json`restore ${installation.at('first')} --no-archive`;
  assert.equal(await installation.balance(), 100);
});

test('a segment that a stop ends takes little space, in the data folder and in the archive', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  /** The kilobytes on the disk of each segment of a folder. */
  const segmentsIn = async (...folder: string[]) => {
    const names = await readdir(installation.at(...folder));
    const segments = names.filter(
      (name) => SEGMENT.test(name.split('.')[0] ?? '') && !name.endsWith('.tail'),
    );
    const facts = await Promise.all(segments.map((name) => stat(installation.at(...folder, name))));
    return facts.map(({ blocks }) => blocks / 2);
  };
  const small = (sizes: readonly number[]) => sizes.filter((kilobytes) => kilobytes < 1_000).length;
  await installation.serve();
  await installation.stop();
  for (const _ of [1, 2, 3]) await installation.json`merchant list`;
  const waiting = await segmentsIn('data', SPOOL);
  assert.ok(small(waiting) >= 3, `${waiting}`);
  await installation.serve();
  await archived(installation);
  const sent = await segmentsIn('archive');
  assert.ok(small(sent) >= 3, `${sent}`);
  // The first segments hold the schema.
  assert.ok(
    sent.every((kilobytes) => kilobytes < 10_000),
    `${sent}`,
  );
});
