/**
 * Words that the source, the documents and the texts of the program do not use, each with the words to use
 * instead (STYLE.md, "Words"; docs/reference/glossary.md). A pattern ignores case unless it has capitals.
 */
export const WORDS: readonly (readonly [pattern: string, instead: string, except?: RegExp])[] = [
  ['whoever|whosoever|whatsoever', 'the noun: "a client that", "an operator who"'],
  ['anew', 'again'],
  // "Tell apart" is a term of its own.
  ['told(?! (the two )?apart)', 'returned, shown, reported or logged'],
  ['tells(?! (the two )?apart)', 'shows, says or returns'],
  ['hurry|hurries', 'stop at once'],
  ['riddle', 'the name of the mechanism'],
  ['gather(s|ed|ing)?', 'batch, collect; the mechanism is the batcher'],
  // Money is settled; a settlement is what the operator owes a merchant.
  [
    'settles?|settled',
    'answer, decide, resolve or end',
    /^(src|docs|sql)\/.*(books|settle|bank|money|accounts)/,
  ],
  ['full house', 'a full service'],
  ['act for', 'impersonate'],
  ['MOST_\\w+|LEAST_\\w+', 'a name with the bound last: QUANTITY_MAX'],
  ['settle[A-Z]\\w*', 'a name that says what is decided: money alone is settled', /(settlement|books|bank)/],
  ['(type|class|interface) (Watch|Pace|Call)', 'OnProgress, Limiter, Request: the field has a word'],
  ['scrip keys?(?! ring)', 'scrip api-key or scrip keyring'],
  ['prefunded balance', 'float'],
  ['(least|greatest|lowest|highest) (values?|payouts?)', 'minimum, maximum'],
];
