/** The type of an answer that is a page. */
export const HTML = 'text/html; charset=utf-8';

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Returns a text as HTML, which an element or a quoted attribute may contain. */
export const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? '');
