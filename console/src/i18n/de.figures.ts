/** Warum es zu einem Betrag oder einer Anzahl keine Buchungen gibt: die Sätze des Dienstes auf Deutsch. */
export const unopened: Readonly<Record<string, string>> = {
  'A number of things, which are listed and not booked.':
    'Eine Anzahl von Dingen, die aufgelistet und nicht gebucht werden.',
  'A number, not a figure.': 'Eine Nummer und kein Betrag.',
  'A share, and not a sum.': 'Ein Anteil und keine Summe.',
  'A setting, and not a sum.': 'Eine Einstellung und keine Summe.',
  'An amount of your file, and not of the books.': 'Ein Betrag aus Ihrer Datei und nicht aus den Büchern.',
  'An entry of the bank, as its statement names it.':
    'Ein Umsatz der Bank, wie er auf ihrem Kontoauszug steht.',
  'An entry of the journal itself, and not a sum.': 'Selbst eine Buchung und keine Summe.',
  'An estimate from the rate and the figures of its line; it is never posted.':
    'Eine Schätzung aus der Quote und den Zahlen der Zeile; sie wird nie gebucht.',
  'An estimate from the use of the last 28 days.': 'Eine Schätzung aus dem Verbrauch der letzten 28 Tage.',
  'As the bank states it.': 'So gibt es die Bank an.',
  'As the bank states it; its entries are below.': 'So gibt es die Bank an; ihre Umsätze stehen darunter.',
  'By the VAT treatment of each day, which entries do not have; their sums are in R2.':
    'Nach der Besteuerung am jeweiligen Tag, die nicht in den Buchungen steht; ihre Summen stehen in R2.',
  'By the rates of the days, which entries do not have; their sums are steps.':
    'Nach den Sätzen der Tage, die nicht in den Buchungen stehen; ihre Summen sind Schritte.',
  'Commission is booked once a day, for all products together.':
    'Die Provision wird einmal am Tag für alle Produkte zusammen gebucht.',
  'Commission is booked once a day, for all products together: see its step.':
    'Die Provision wird einmal am Tag für alle Produkte zusammen gebucht: siehe ihren Schritt.',
  'Counted at each call, so that a limit holds at once; the calls are transactions.':
    'Bei jedem Aufruf gezählt, damit die Grenze sofort gilt; die Aufrufe sind Buchungen.',
  'Each line adds to the line before it; the last figures are in the estimate, with their entries.':
    'Jede Zeile zählt zur vorigen hinzu; die letzten Zahlen stehen mit ihren Buchungen in der Schätzung.',
  'Entries of the bank, which name the movements that they are matched with.':
    'Umsätze der Bank, bei denen die zugeordneten Bewegungen stehen.',
  'It follows from earlier settlements, or from the steps before it.':
    'Ergibt sich aus früheren Abrechnungen oder aus den Schritten davor.',
  'Nothing is owed, or less than the minimum payout.':
    'Nichts ist geschuldet, oder weniger als die kleinste Auszahlung.',
  'Of one request, and not a sum.': 'Aus einer einzelnen Anfrage und keine Summe.',
  'Of the bank, and not of the books: its statements and entries are below.':
    'Von der Bank und nicht aus den Büchern: Kontoauszüge und Umsätze stehen darunter.',
  'Of the entries of this list.': 'Aus den Buchungen dieser Liste.',
  'One entry of the bank.': 'Ein einzelner Umsatz der Bank.',
  'Only payouts and opening balances have no product.':
    'Nur Auszahlungen und Eröffnungssalden haben kein Produkt.',
  'Redemptions less reversals; the entries are behind the amount.':
    'Einlösungen ohne Stornos; die Buchungen stehen hinter dem Betrag.',
  'The amount less that of the matched movements, which are named.':
    'Der Betrag ohne den der zugeordneten Bewegungen, die genannt sind.',
  'The balance of a card; its history is that of all merchants.':
    'Der Wert einer Karte; ihr Verlauf gehört allen Händlern.',
  'The balances of the chosen vouchers.': 'Der Wert der gewählten Gutscheine.',
  'The change of the stated balance, less the entries.':
    'Die Änderung des angegebenen Saldos ohne die Umsätze.',
  'The close of a day counts vouchers; their money is beside it.':
    'Der Tagesabschluss zählt die Gutscheine; ihr Geld steht daneben.',
  'The close of a day sorts vouchers by age; the entries behind their money are in R2.':
    'Der Tagesabschluss ordnet die Gutscheine nach Alter; die Buchungen zu ihrem Geld stehen in R2.',
  'The difference of two balances that the bank states.':
    'Der Unterschied zweier Salden, die die Bank angibt.',
  'The difference of the two figures beside it.': 'Der Unterschied der beiden Beträge daneben.',
  'The disputes are on the page of the settlement.':
    'Die Beanstandungen stehen auf der Seite der Abrechnung.',
  'What a redemption took, less its refunds: they are in the history of its voucher.':
    'Was die Einlösung nahm, ohne die Erstattungen: Sie stehen im Verlauf des Gutscheins.',
  'The movements of its history add up to it.': 'Die Bewegungen im Verlauf ergeben zusammen diesen Betrag.',
  'The opening balance and the amounts up to this line.':
    'Der Anfangssaldo und die Beträge bis zu dieser Zeile.',
  'The sum of a day by account number; the entries of each kind of account are in R1.':
    'Die Summe eines Tages je Kontonummer; die Buchungen jeder Art von Konto stehen in R1.',
  'The value that its batch or its activation gave it.':
    'Der Wert, den ihm die Bestellung oder die Aktivierung gab.',
  'What the bank states, less the own money in the account.':
    'Was die Bank angibt, ohne das eigene Geld auf dem Konto.',
  'The movements up to here add up to it.': 'Die Bewegungen bis hierher ergeben ihn.',
};
