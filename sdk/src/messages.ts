import type { CodeName } from './codes.ts';

/** The messages for the customer at the till. */
export type UserMessages = {
  readonly invalidVoucher: string;
  readonly invalidPin: string;
  readonly pinLocked: string;
  readonly voucherNotActive: string;
  readonly voucherAlreadyActivated: string;
  readonly voucherAlreadyRedeemed: string;
  readonly voucherBlocked: string;
  readonly voucherCanceled: string;
  readonly voucherNotAccepted: string;
  readonly voucherExpired: string;
  readonly insufficientBalance: string;
  readonly invalidAmount: string;
  readonly redemptionAlreadyUpdated: string;
  readonly notFound: string;
  readonly tryAgainLater: string;
  readonly unknownOutcome: string;
  readonly aborted: string;
  /** For errors that the customer cannot change. */
  readonly general: string;
};

export type UserMessageKey = keyof UserMessages;

const EN: UserMessages = {
  invalidVoucher: 'We do not know this voucher. Please check its number and PIN.',
  invalidPin: 'The PIN is not right. Please check it.',
  pinLocked: 'A wrong PIN was entered too often. This voucher is locked for a while.',
  voucherNotActive: 'This voucher has not been activated yet.',
  voucherAlreadyActivated: 'This voucher is active already.',
  voucherAlreadyRedeemed: 'Nothing is left on this voucher.',
  voucherBlocked: 'This voucher is blocked. Please ask where you bought it.',
  voucherCanceled: 'This voucher is no longer valid.',
  voucherNotAccepted: 'This voucher is not accepted here.',
  voucherExpired: 'This voucher has expired.',
  insufficientBalance: 'There is not enough left on this voucher for this amount.',
  invalidAmount: 'This amount is not possible.',
  redemptionAlreadyUpdated: 'This payment has been changed once already, and cannot be changed again.',
  notFound: 'We cannot find this payment.',
  tryAgainLater: 'This does not work at the moment. Please try again shortly.',
  unknownOutcome: 'We are checking whether your voucher was charged. Please wait, and do not pay again yet.',
  aborted: 'The payment was stopped.',
  general: 'This is not possible at the moment. Please choose another way to pay.',
};

const FR: UserMessages = {
  invalidVoucher: 'Nous ne connaissons pas ce bon. Veuillez vérifier son numéro et son code PIN.',
  invalidPin: "Le code PIN n'est pas correct. Veuillez le vérifier.",
  pinLocked: 'Un code PIN erroné a été saisi trop souvent. Ce bon est bloqué pour un certain temps.',
  voucherNotActive: "Ce bon n'a pas encore été activé.",
  voucherAlreadyActivated: 'Ce bon est déjà activé.',
  voucherAlreadyRedeemed: 'Ce bon est épuisé.',
  voucherBlocked: 'Ce bon est bloqué. Veuillez vous adresser au magasin où il a été acheté.',
  voucherCanceled: "Ce bon n'est plus valable.",
  voucherNotAccepted: "Ce bon n'est pas accepté ici.",
  voucherExpired: 'Ce bon a expiré.',
  insufficientBalance: 'Le solde de ce bon ne suffit pas pour ce montant.',
  invalidAmount: "Ce montant n'est pas possible.",
  redemptionAlreadyUpdated: 'Ce paiement a déjà été modifié une fois et ne peut plus être modifié.',
  notFound: 'Nous ne trouvons pas ce paiement.',
  tryAgainLater: 'Cela ne fonctionne pas pour le moment. Veuillez réessayer dans un instant.',
  unknownOutcome: 'Nous vérifions si votre bon a été débité. Veuillez patienter et ne pas payer à nouveau.',
  aborted: 'Le paiement a été interrompu.',
  general: "Ce n'est pas possible pour le moment. Veuillez choisir un autre moyen de paiement.",
};

const PT: UserMessages = {
  invalidVoucher: 'Não conhecemos este vale. Por favor, verifique o número e o PIN.',
  invalidPin: 'O PIN não está correto. Por favor, verifique-o.',
  pinLocked: 'Foi introduzido um PIN errado demasiadas vezes. Este vale está bloqueado por algum tempo.',
  voucherNotActive: 'Este vale ainda não foi ativado.',
  voucherAlreadyActivated: 'Este vale já está ativo.',
  voucherAlreadyRedeemed: 'Este vale já não tem saldo.',
  voucherBlocked: 'Este vale está bloqueado. Por favor, pergunte onde o comprou.',
  voucherCanceled: 'Este vale já não é válido.',
  voucherNotAccepted: 'Este vale não é aceite aqui.',
  voucherExpired: 'Este vale expirou.',
  insufficientBalance: 'O saldo deste vale não chega para este valor.',
  invalidAmount: 'Este valor não é possível.',
  redemptionAlreadyUpdated: 'Este pagamento já foi alterado uma vez e não pode ser alterado de novo.',
  notFound: 'Não encontramos este pagamento.',
  tryAgainLater: 'De momento não funciona. Por favor, tente de novo dentro de instantes.',
  unknownOutcome: 'Estamos a verificar se o seu vale foi debitado. Por favor, aguarde e não pague de novo.',
  aborted: 'O pagamento foi interrompido.',
  general: 'De momento não é possível. Por favor, escolha outro meio de pagamento.',
};

const ES: UserMessages = {
  invalidVoucher: 'No conocemos este vale. Por favor, compruebe el número y el PIN.',
  invalidPin: 'El PIN no es correcto. Por favor, compruébelo.',
  pinLocked: 'Se ha introducido un PIN erróneo demasiadas veces. Este vale está bloqueado por un tiempo.',
  voucherNotActive: 'Este vale todavía no se ha activado.',
  voucherAlreadyActivated: 'Este vale ya está activado.',
  voucherAlreadyRedeemed: 'A este vale no le queda saldo.',
  voucherBlocked: 'Este vale está bloqueado. Por favor, pregunte donde lo compró.',
  voucherCanceled: 'Este vale ya no es válido.',
  voucherNotAccepted: 'Este vale no se acepta aquí.',
  voucherExpired: 'Este vale ha caducado.',
  insufficientBalance: 'El saldo de este vale no alcanza para este importe.',
  invalidAmount: 'Este importe no es posible.',
  redemptionAlreadyUpdated: 'Este pago ya se ha modificado una vez y no puede modificarse de nuevo.',
  notFound: 'No encontramos este pago.',
  tryAgainLater: 'No funciona en este momento. Por favor, inténtelo de nuevo en breve.',
  unknownOutcome:
    'Estamos comprobando si se ha cargado su vale. Por favor, espere y no pague de nuevo todavía.',
  aborted: 'El pago se ha interrumpido.',
  general: 'No es posible en este momento. Por favor, elija otra forma de pago.',
};

const DE: UserMessages = {
  invalidVoucher: 'Diesen Gutschein kennen wir nicht. Bitte prüfen Sie Nummer und PIN.',
  invalidPin: 'Die PIN stimmt nicht. Bitte prüfen Sie sie.',
  pinLocked: 'Die PIN wurde zu oft falsch eingegeben. Dieser Gutschein ist für einige Zeit gesperrt.',
  voucherNotActive: 'Dieser Gutschein ist noch nicht aktiviert.',
  voucherAlreadyActivated: 'Dieser Gutschein ist schon aktiviert.',
  voucherAlreadyRedeemed: 'Dieser Gutschein ist aufgebraucht.',
  voucherBlocked: 'Dieser Gutschein ist gesperrt. Bitte fragen Sie dort nach, wo Sie ihn gekauft haben.',
  voucherCanceled: 'Dieser Gutschein ist nicht mehr gültig.',
  voucherNotAccepted: 'Dieser Gutschein wird hier nicht angenommen.',
  voucherExpired: 'Dieser Gutschein ist abgelaufen.',
  insufficientBalance: 'Das Guthaben dieses Gutscheins reicht für diesen Betrag nicht aus.',
  invalidAmount: 'Dieser Betrag ist nicht möglich.',
  redemptionAlreadyUpdated:
    'Diese Zahlung wurde schon einmal geändert und kann nicht noch einmal geändert werden.',
  notFound: 'Wir finden diese Zahlung nicht.',
  tryAgainLater: 'Das geht im Moment nicht. Bitte versuchen Sie es gleich noch einmal.',
  unknownOutcome:
    'Wir prüfen, ob Ihr Gutschein belastet wurde. Bitte warten Sie, und zahlen Sie noch nicht erneut.',
  aborted: 'Die Zahlung wurde abgebrochen.',
  general: 'Das ist im Moment nicht möglich. Bitte zahlen Sie auf andere Weise.',
};

/** The codes that have a message of their own, or share one; the others get `general`. */
const KEYS: Readonly<Partial<Record<CodeName, UserMessageKey>>> = {
  amountOutsideLimits: 'invalidAmount',
  serviceUnavailable: 'tryAgainLater',
  tooManyRequests: 'tryAgainLater',
  internalError: 'tryAgainLater',
  networkFailure: 'tryAgainLater',
  timedOut: 'tryAgainLater',
  undone: 'aborted',
  storeFailure: 'tryAgainLater',
};

const languages = new Map<string, Readonly<Partial<UserMessages>>>(
  Object.entries({ en: EN, fr: FR, pt: PT, es: ES, de: DE }),
);

/**
 * Adds a language for `userMessage`, or other words for a known one.
 * @param tag such as `it` or `pt-BR`
 * @param messages those left out are given in the language without its region, else in English
 */
export function addLanguage(tag: string, messages: Readonly<Partial<UserMessages>>): void {
  const known = languages.get(tag.toLowerCase());
  languages.set(tag.toLowerCase(), { ...known, ...messages });
}

/**
 * The message for the customer, in the first of the languages that is known, or its nearest, else in English.
 */
export function messageFor(code: CodeName, ...wanted: readonly (string | null | undefined)[]): string {
  const key = KEYS[code] ?? (Object.hasOwn(EN, code) ? (code as UserMessageKey) : 'general');
  for (const language of wanted) {
    // The till must show a message for any language tag.
    const parts = typeof language === 'string' ? language.toLowerCase().split(/[-_]/) : [];
    for (let length = parts.length; length > 0; length--) {
      const message = languages.get(parts.slice(0, length).join('-'))?.[key];
      if (message !== undefined) return message;
    }
  }
  return EN[key];
}
