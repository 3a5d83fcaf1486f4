import { EmbeddedError } from './error.ts';

/**
 * Proves who wrote a backup or a part of the archived log. An attacker who can change these could run
 * programs where they are restored: a database's own tables name programs and libraries. Checksums alone do
 * not help, since they can be changed with the files.
 */
export type Authenticator = {
  /** Returns the tag of a text: the id of the newest key, a dot, and a code that needs that key. */
  sign(text: string): string;
  verify(text: string, tag: string): Verdict;
};

type Verdict = 'authentic' | 'changed' | 'unknown key';

/** Whose backups and log are accepted. `anybody` is for an operator who has asked for it. */
export type Writer = Pick<Authenticator, 'verify'> | 'anybody';

/** A tag, also in names of files. */
export const TAG = '[A-Za-z0-9_-]{1,16}\\.[A-Za-z0-9_-]{43}';

/**
 * Checks that a text has a tag of a key that this installation holds.
 * @param what for the message, such as "the backup /backups/20270301"
 * @param instead what can be used in its place
 * @throws EmbeddedError
 */
export function authenticate(
  writer: Writer,
  { what, instead }: { readonly what: string; readonly instead: string },
  text: string,
  tag: string | undefined,
): void {
  if (writer === 'anybody') return;
  const unless = 'or add --trust if nobody else can have changed it';
  if (tag === undefined)
    throw new EmbeddedError(`nothing proves who wrote ${what}: use ${instead}, ${unless}`);
  const verdict = writer.verify(text, tag);
  if (verdict === 'changed')
    throw new EmbeddedError(`${what} was changed after it was written: use ${instead}, ${unless}`);
  if (verdict === 'unknown key')
    throw new EmbeddedError(
      `${what} was written under the key ${tag.replace(/\..*/s, '')}, which the key ring lacks: set the key ring of ` +
        `that time, ${unless}`,
    );
}
