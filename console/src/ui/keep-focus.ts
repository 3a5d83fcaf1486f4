/** A button that waits for an answer is disabled, and loses the focus. It gets it back, unless it is elsewhere. */
export function keepFocus(): void {
  let lost: EventTarget | undefined;
  const look = ({ target }: MutationRecord) => {
    const button = target as HTMLButtonElement;
    if (button.disabled && document.activeElement === button) lost = button;
    if (button.disabled || lost !== button) return;
    lost = undefined;
    if (document.activeElement === document.body) button.focus();
  };
  new MutationObserver((changes) => changes.forEach(look)).observe(document.body, {
    attributeFilter: ['disabled'],
    subtree: true,
  });
}
