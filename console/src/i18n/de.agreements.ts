/**
 * What two people agree on, by operation: the sentences of the service in German. `{merchant}` may be the
 * operator, as in „an den Betreiber“.
 */
export const agreements: Readonly<Record<string, string>> = {
  'merchant.create': 'Händler {merchant} mit einem Prepaid-Konto von {amount} anlegen',
  'api-key.create': 'API-Schlüssel für {merchant} anlegen, der dies darf: {scopes}',
  'api-key.rotate': 'API-Schlüssel {keyId} für {merchant}, der dies darf, ersetzen: {scopes}',
  'batch.release': 'Codes der Bestellung {reference} herunterladen: {vouchers} Gutscheine',
  'merchant.set-download-approval': 'Eine Person von {merchant} allein Codes herunterladen lassen',
  'float.top-up': 'Prepaid-Konto von {merchant} um {amount} aufladen: {before} → {after}',
  'float.refund': '{amount} vom Prepaid-Konto von {merchant} als zurückgezahlt buchen: {before} → {after}',
  'float.correct':
    '{amount} einer Aufladung von {topUp} vom Prepaid-Konto von {merchant} zurücknehmen: {before} → {after}',
  'voucher.adjust': 'Wert von Gutschein {voucher} von {merchant} ändern: {before} → {after}',
  'voucher.cash-out':
    'Gutschein {voucher} von {merchant} als bar ausgezahlt durch {paidBy} buchen: {before} → {after}',
  'voucher.escheat':
    'Wert von Gutschein {voucher} von {merchant} als an einen Staat gezahlt buchen: {before} → {after}',
  'voucher.extend': 'Gutschein {voucher} von {merchant} bis {expiry} verlängern und ihm {amount} zurückgeben',
  'voucher.cancel':
    'Gutschein {voucher} von {merchant} endgültig stornieren und {amount} dem Prepaid-Konto von {payer} zurückgeben',
  'voucher.bulk': 'Gutscheine von {merchant} ändern ({action}): {vouchers}, im Wert von {worth}',
  'voucher.bulk-cancel': 'Gutscheine von {merchant} endgültig stornieren: {vouchers}, im Wert von {worth}',
  'redemption.correct': 'Einlösung durch {merchant} von Gutschein {voucher} berichtigen: {before} → {after}',
  'redemption.refund':
    '{refunded} einer Einlösung durch {merchant} an Gutschein {voucher} zurückgeben: {before} → {after}',
  'sheets.order':
    'Gutscheine der Bestellung {reference} von {merchant} drucken: {vouchers}, im Wert von {worth}',
  'sheets.order-card':
    'Die Karte drucken, die Gutschein {replaced} von {merchant} ersetzt, im Wert von {worth}',
  'webhook.add': 'Codes und PINs von {merchant} an {url} senden',
  'token.create': 'Token für {merchant} mit diesen Rollen anlegen: {roles}',
  'user.invite': '{email} für {merchant} mit diesen Rollen einladen: {roles}',
  'user.set-roles': '{email} für {merchant} diese Rollen geben: {roles} statt {before}',
  'user.reset-2fa':
    'Passwort und zweite Faktoren von {email} für {merchant} löschen und einen Link für neue anlegen',
  'user.confirm': 'Bestätigen, dass das Konto {email} für {merchant} der genannten Person gehört',
  'settings.set':
    'Freigeben: {mode} statt {modeBefore}, und ab mehr als {vouchers} Gutscheinen statt {vouchersBefore}',
  'bank.set-pay-in': 'Händler {currency} auf das Konto {account} statt {accountBefore} überweisen lassen',
  'settings.limit': 'Eine Person {after} statt {before} in 24 Stunden von Hand bewegen lassen',
  'books.opening': '{amount} in das Konto {account} von {merchant} übernehmen',
  'books.transfer': '{amount} zwischen der Bank und dem eigenen Konto {account} buchen',
  'books.escheat':
    '{amount} nicht eingefordertes Geld von Gutscheinen als an einen Staat gezahlt buchen; Beträge: {expiries}',
  'settlement.approve':
    'Abrechnung {number} von {merchant}, {from} bis {to}, freigeben: {amount} ist bis {dueOn} zu zahlen',
  'settlement.pay':
    'Buchen, dass die Bank Abrechnung {number} von {merchant}, {from} bis {to}, gezahlt hat: {amount}',
  'settlement.returned':
    'Buchen, dass die Zahlung der Abrechnung {number} an {merchant}, {from} bis {to}, zurückkam: {amount}',
  'settlement.terms': 'Konditionen von {merchant} ab {from}: {commission} Prozent des Umsatzes gehören Ihnen',
};
