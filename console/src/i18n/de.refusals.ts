/**
 * Die Sätze, mit denen der Dienst ablehnt, auf Deutsch. `{}` steht für einen Wert; ein deutscher Satz nennt
 * die Werte in derselben Reihenfolge, oder die ersten davon.
 */
export const refusals: Readonly<Record<string, string>> = {
  // Aufträge, Abrechnungen, Chargen
  'job {} is {}: it has ended': 'Auftrag {} ist schon beendet.',
  'settlement {} is a draft: it is proved when it is approved':
    'Abrechnung {} ist ein Entwurf. Ihr Beweis entsteht mit der Freigabe.',
  'settlement {} is a draft: its documents are made when it is approved':
    'Abrechnung {} ist ein Entwurf. Ihre Dokumente entstehen mit der Freigabe.',
  'batch {} is {}: only a batch that is being produced can be canceled':
    'Charge {} ist schon fertig. Nur eine Charge, die gerade entsteht, lässt sich abbrechen.',
  'batch {} is PROCESSING: it can be exported once it is COMPLETED':
    'Charge {} entsteht gerade. Sie lässt sich exportieren, sobald sie fertig ist.',
  'batch {} is CANCELED: none of its vouchers can be used':
    'Charge {} ist storniert. Keiner ihrer Gutscheine lässt sich benutzen.',
  'batch {} has no vouchers left': 'Charge {} hat keine Gutscheine mehr.',
  'another person of the merchant approves this download first: ask for it on the page of the batch':
    'Diesen Download gibt zuerst eine andere Person des Händlers frei. Verlangen Sie ihn auf der Seite der Charge.',
  'sheets of this merchant are being drawn: try again in a minute':
    'Für diesen Händler werden gerade Bögen gezeichnet. Versuchen Sie es in einer Minute noch einmal.',
  'other sheets are being drawn: try again in a minute':
    'Gerade werden andere Bögen gezeichnet. Versuchen Sie es in einer Minute noch einmal.',
  'sheets hold up to {} vouchers: an operator exports a larger batch on the machine':
    'Bögen fassen bis zu {} Gutscheine. Eine größere Charge exportiert der Betreiber auf dem Server.',
  'sheets are ordered by a person, who downloads them':
    'Bögen bestellt eine Person, die sie dann herunterlädt.',
  'voucher {} is canceled': 'Gutschein {} ist storniert.',
  'voucher {} was exported before: make sure that nobody has the card, and order it again':
    'Gutschein {} wurde schon exportiert. Stellen Sie sicher, dass niemand die Karte hat, und ' +
    'bestellen Sie sie neu.',
  'sheets can be downloaded for 24 hours: order them again':
    'Bögen lassen sich 24 Stunden lang herunterladen. Bestellen Sie sie neu.',
  'the card was downloaded already: if nobody has it, order it again':
    'Die Karte wurde schon heruntergeladen. Wenn niemand sie hat, bestellen Sie sie neu.',
  'voucher {} was not replaced: name the one that was replaced':
    'Gutschein {} wurde nicht ersetzt. Nennen Sie den, der ersetzt wurde.',
  'voucher {}, which replaced it, was replaced too: name voucher {}':
    'Gutschein {}, der ihn ersetzt hat, wurde ebenfalls ersetzt. Nennen Sie Gutschein {}.',
  'batch {} was downloaded by {} at {} ({}): if that file is lost, ask for it again, with a reason':
    'Charge {} hat {} schon heruntergeladen, am {} ({}). Ist die Datei verloren, verlangen Sie sie mit ' +
    'einem Grund erneut.',
  ['nobody else could approve a download: invite an owner or a person for operations, whose account the ' +
    'operator then confirms']:
    'Niemand sonst könnte einen Download freigeben. Laden Sie einen Inhaber oder eine Person für den ' +
    'Betrieb ein; der Betreiber bestätigt dann das Konto.',
  // Schlüssel, Händler, Produkte, Webhooks
  'you may lower a limit; the operator raises or removes it':
    'Sie dürfen eine Grenze senken. Der Betreiber hebt sie an oder entfernt sie.',
  'float needs one of the roles {}: leave it out, and have it topped up':
    'Für das Prepaid-Konto fehlt Ihnen die Rolle. Lassen Sie den Betrag weg, und lassen Sie es aufladen.',
  'it would have expired already': 'Er wäre schon abgelaufen.',
  'the new key would have expired already': 'Der neue Schlüssel wäre schon abgelaufen.',
  'the merchant has no permission {} itself': 'Der Händler hat dieses Recht selbst nicht: {}.',
  'a merchant has at most {} keys, and gets as many in 24 hours: revoke one, or wait':
    'Ein Händler hat höchstens {} Schlüssel und bekommt so viele in 24 Stunden. Widerrufen Sie einen, ' +
    'oder warten Sie.',
  'it has ended: create a key': 'Er gilt nicht mehr. Legen Sie einen Schlüssel an.',
  'it was rotated already: {} takes its place': 'Er wurde schon erneuert: {} ist an seiner Stelle.',
  'the key {} has made no calls today: there is nothing to pardon':
    'Mit dem Schlüssel {} gab es heute keine Aufrufe. Es gibt nichts zu verzeihen.',
  'merchant {} has no float in {}: top it up first':
    'Händler {} hat kein Prepaid-Konto in {}. Laden Sie es zuerst auf.',
  'the product {} has this design': 'Das Produkt {} hat diese Gestaltung.',
  'the product {} exists already': 'Das Produkt {} gibt es schon.',
  'another logo is being read: try again in a moment':
    'Gerade wird ein anderes Logo gelesen. Versuchen Sie es gleich noch einmal.',
  'a merchant, like the operator, has at most {} endpoints':
    'Ein Händler hat wie der Betreiber höchstens {} Endpunkte.',
  'endpoint {} has no URL: its events are read, and not sent':
    'Endpunkt {} hat keine Adresse. Seine Ereignisse werden abgeholt und nicht gesendet.',
  'endpoint {} is off: enable it first': 'Endpunkt {} ist aus. Schalten Sie ihn zuerst ein.',
  'events after this cursor are no longer kept: begin without it, and compare with the list of transactions':
    'Ereignisse ab dieser Stelle werden nicht mehr aufbewahrt. Beginnen Sie von vorn, und vergleichen ' +
    'Sie mit den Transaktionen.',
  'on Citus {}: a call books on one shard alone':
    'Auf Citus gibt es diese Grenze nicht: Ein Aufruf bucht auf einem einzigen Teil der Datenbank.',
  // Freigaben
  'this needs your second factor again: it is asked for every five minutes':
    'Dafür ist Ihr zweiter Faktor noch einmal nötig. Danach wird alle fünf Minuten gefragt.',
  'a token can propose, but never approve': 'Ein Token kann vorschlagen, aber nie freigeben.',
  '{} is approved by one of the roles {}': 'Zur Freigabe fehlt Ihnen die Rolle.',
  '{} is rejected by one of the roles {}': 'Zum Ablehnen fehlt Ihnen die Rolle.',
  'your account approves nothing until somebody who does not know its link has confirmed it, under Users':
    'Ihr Konto kann erst freigeben, wenn jemand es unter Benutzer bestätigt hat, der seinen Link nicht ' +
    'kennt.',
  'you have approved this: another person has to approve it, too':
    'Sie haben das freigegeben. Eine zweite Person muss es ebenfalls freigeben.',
  'you approved {} of {}: another person approves this. You can propose it yourself':
    'Sie haben den Schritt davor freigegeben. Diesen gibt eine andere Person frei; vorschlagen können ' +
    'Sie ihn selbst.',
  'you can approve this yourself from {}': 'Sie können das selbst freigeben, aber erst ab {}.',
  'the token that proposed this was revoked: reject it':
    'Das Token, das dies vorgeschlagen hat, wurde widerrufen. Lehnen Sie es ab.',
  'the token that proposed this may not do so any more: reject it':
    'Das Token, das dies vorgeschlagen hat, darf es nicht mehr. Lehnen Sie es ab.',
  'the person who proposed this may not do so any more: reject it':
    'Die Person, die dies vorgeschlagen hat, darf es nicht mehr. Lehnen Sie es ab.',
  'this version of the service does not know the operation: reject it':
    'Diese Version des Dienstes kennt den Vorgang nicht. Lehnen Sie ihn ab.',
  'only the person who proposed this can withdraw it: reject it instead':
    'Nur wer es vorgeschlagen hat, kann es zurückziehen. Lehnen Sie es stattdessen ab.',
  'this has expired: propose it again': 'Der Vorschlag ist abgelaufen. Schlagen Sie es noch einmal vor.',
  'this was {} already': 'Darüber wurde schon entschieden.',
  'nothing is left to do: it was done already, or booked under the same reference. Reject this':
    'Daran ist nichts mehr zu tun: Es ist schon geschehen, oder unter derselben Referenz gebucht. Lehnen Sie ' +
    'es ab.',
  // Bücher
  'no day is closed yet: there is nothing to publish':
    'Noch ist kein Tag abgeschlossen. Es gibt nichts zu veröffentlichen.',
  '{} has a checkpoint of another key: {}. {}':
    'Der Ordner {} hat den Prüfpunkt eines anderen Schlüssels: {}. {}',
  '{} contains another history: {}: {}': 'Der Ordner {} enthält eine andere Geschichte, ab {}: {}',
  '{} is not closed: only closed days can be exported':
    '{} ist nicht abgeschlossen. Nur abgeschlossene Tage lassen sich exportieren.',
  'transaction {} is not of the days from {} to {}':
    'Die Buchung {} gehört nicht zu den Tagen von {} bis {}.',
  // Personen und Anmeldung
  'this is the last owner: invite another one first':
    'Das ist der letzte Inhaber. Laden Sie zuerst einen weiteren ein.',
  'this user has been erased': 'Dieser Benutzer wurde gelöscht.',
  'this user has enrolled before: disable it, since others may refer to it':
    'Dieser Benutzer war schon angemeldet. Deaktivieren Sie ihn, denn anderes kann sich auf ihn beziehen.',
  'disable this user first': 'Deaktivieren Sie diesen Benutzer zuerst.',
  'a token has at most the roles of its creator': 'Ein Token hat höchstens die Rollen dessen, der es anlegt.',
  'there is a user with this email address: change its roles, or reset its second factor':
    'Es gibt schon einen Benutzer mit dieser E-Mail-Adresse. Ändern Sie seine Rollen, oder setzen Sie ' +
    'den zweiten Faktor zurück.',
  'this user is disabled: enable it first': 'Dieser Benutzer ist deaktiviert. Aktivieren Sie ihn zuerst.',
  'only somebody who has enrolled, and is not disabled, can be confirmed':
    'Bestätigen lässt sich nur, wer sein Konto eingerichtet hat und nicht deaktiviert ist.',
  'this account may be yours: somebody else, who does not know its link, confirms it':
    'Dieses Konto könnte Ihres sein. Es bestätigt jemand, der seinen Link nicht kennt.',
  'your own account has to be confirmed first': 'Zuerst muss Ihr eigenes Konto bestätigt werden.',
  '{} is for people: a token may not call it': 'Dieser Vorgang ist für Personen und nicht für Tokens.',
  'open the link again, and allow cookies': 'Öffnen Sie den Link noch einmal, und erlauben Sie Cookies.',
  'this link has been used, has expired, or was replaced by a newer one: ask for another one':
    'Dieser Link wurde schon benutzt, ist abgelaufen oder wurde durch einen neueren ersetzt. Verlangen ' +
    'Sie einen neuen.',
  'this link has been used, or has expired': 'Dieser Link wurde schon benutzt oder ist abgelaufen.',
  'the email address or the password is wrong': 'Die E-Mail-Adresse oder das Passwort ist falsch.',
  'the code is wrong, or was used already: wait for the next one':
    'Der Code ist falsch oder wurde schon benutzt. Warten Sie auf den nächsten.',
  'the sign-in has expired: begin again with the password':
    'Die Anmeldung ist abgelaufen. Beginnen Sie wieder mit dem Passwort.',
  'the sign-in has expired: begin again': 'Die Anmeldung ist abgelaufen. Beginnen Sie von vorn.',
  'the session has ended: sign in again': 'Die Sitzung ist beendet. Melden Sie sich wieder an.',
  'sign in first: the session has ended': 'Die Sitzung ist beendet. Melden Sie sich zuerst an.',
  'nobody was invited under this account': 'Unter diesem Konto wurde niemand eingeladen.',
  'passkeys need a name, such as localhost, in place of a numeric address':
    'Passkeys brauchen einen Namen wie localhost anstelle einer Adresse aus Zahlen.',
  'the challenge has expired: begin again': 'Die Zeit dafür ist abgelaufen. Beginnen Sie von vorn.',
  'there are {} passkeys already: remove one': 'Es gibt schon {} Passkeys. Entfernen Sie einen.',
  'this passkey was added already': 'Dieser Passkey wurde schon hinzugefügt.',
  'this passkey does not sign in here': 'Mit diesem Passkey kann man sich hier nicht anmelden.',
  'the identity provider cannot be reached: try again, or use the password':
    'Der Identitätsanbieter ist nicht erreichbar. Versuchen Sie es noch einmal, oder benutzen Sie das ' +
    'Passwort.',
  // Zu viel auf einmal; von anderen Seiten
  'there were too many attempts: try again in {}':
    'Das waren zu viele Versuche. Versuchen Sie es in einigen Minuten noch einmal.',
  'too many people sign in at once: try again in a moment':
    'Gerade melden sich zu viele Personen an. Versuchen Sie es gleich noch einmal.',
  'it was done {} times within a minute: wait a minute':
    'Das geschah {} Mal in einer Minute. Warten Sie eine Minute.',
  '{} pages follow jobs at the moment: close one, or ask for the job instead':
    'Gerade verfolgen {} Seiten einen Auftrag. Schließen Sie eine davon.',
  'the service answers many other requests: ask again in a moment':
    'Der Dienst hat gerade viel zu tun. Fragen Sie gleich noch einmal.',
  'you have many requests in progress: wait for their answers':
    'Viele Ihrer Anfragen laufen noch. Warten Sie auf ihre Antworten.',
  'a page of another site may not read this': 'Eine Seite einer anderen Website darf das nicht lesen.',
  'Sec-Fetch-Site must be same-origin': 'Die Anfrage kommt von einer anderen Website.',
  'Origin must be the address of this service (SCRIP_PUBLIC_URL behind a proxy)':
    'Die Adresse der Seite ist nicht die des Dienstes (hinter einem Proxy: SCRIP_PUBLIC_URL).',
  'the header X-Scrip-Request is missing': 'Die Anfrage kommt nicht von einer Seite des Dienstes.',
  // Was es nicht gibt
  'there is no {}': 'Das gibt es nicht, oder nicht mehr. Prüfen Sie die Angabe.',
  'nothing was changed yet': 'Noch wurde nichts geändert.',
  '{} has no checkpoint': 'Der Ordner {} hat keinen Prüfpunkt.',
};

/** Returns the values of a message in the places of a sentence, or undefined if it is not that sentence. */
function valuesIn(message: string, sentence: string): readonly string[] | undefined {
  const [first = '', ...rest] = sentence.split('{}');
  if (!message.startsWith(first)) return undefined;
  const values: string[] = [];
  let at = first.length;
  for (const [index, part] of rest.entries()) {
    const isLast = index === rest.length - 1;
    const end = isLast ? message.length - part.length : message.indexOf(part, at);
    if (end < at || !message.startsWith(part, end)) return undefined;
    values.push(message.slice(at, end));
    at = end + part.length;
  }
  return at === message.length ? values : undefined;
}

/**
 * Returns a sentence of the service in German, or undefined if it is not known.
 * @param write a value as the page writes it
 */
export function refusalOf(message: string, write: (value: string) => string): string | undefined {
  for (const [english, german] of Object.entries(refusals)) {
    const values = valuesIn(message, english);
    if (values) return values.reduce((text, value) => text.replace('{}', () => write(value)), german);
  }
  return undefined;
}
