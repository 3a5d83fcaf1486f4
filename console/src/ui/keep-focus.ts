/** Returns the focus to a button that was disabled while it waited, unless the focus is elsewhere by then. */
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
