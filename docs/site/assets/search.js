/** The search of the site: an index that the build made, loaded when somebody begins to search. */
import MiniSearch from './minisearch.js';

const RESULTS_MAX = 12;
const SITE = new URL('../', import.meta.url);
/** The same in build.ts. */
const OPTIONS = { fields: ['title', 'heading', 'text'], storeFields: ['title', 'heading', 'excerpt'] };

const box = document.querySelector('search');
const input = document.getElementById('search');
const results = document.getElementById('results');
/** @type {Promise<MiniSearch> | undefined} */
let loading;

async function load() {
  const response = await fetch(new URL('assets/index.json', SITE));
  if (!response.ok) throw new Error(`the index of the search: HTTP ${response.status}`);
  return MiniSearch.loadJSON(await response.text(), OPTIONS);
}

/** Text from the index becomes text on the page, never HTML. */
function line(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

function show(found, term) {
  const links = found.slice(0, RESULTS_MAX).map(({ id, title, heading, excerpt }) => {
    const link = line('a', '');
    link.href = new URL(id, SITE).href;
    link.append(line('b', heading === title ? title : `${title} › ${heading}`), line('span', excerpt));
    link.addEventListener('click', close);
    return link;
  });
  results.replaceChildren(...(links.length > 0 ? links : [line('p', `Nothing found for “${term}”.`)]));
  results.hidden = false;
}

function close() {
  results.hidden = true;
}

async function search() {
  const term = input.value.trim();
  if (term === '') return close();
  loading ??= load();
  try {
    const index = await loading;
    // A key pressed meanwhile has its own search.
    if (term !== input.value.trim()) return;
    show(index.search(term, { prefix: true, fuzzy: 0.15, boost: { title: 4, heading: 3 } }), term);
  } catch {
    loading = undefined;
    results.replaceChildren(line('p', 'The search cannot be loaded. Try again.'));
    results.hidden = false;
  }
}

/** Arrows go through the results, and back to the box. */
function move(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === 'Escape') {
    close();
    input.focus();
  }
  if (!step || results.hidden) return;
  const stops = [input, ...results.querySelectorAll('a')];
  const next = stops[stops.indexOf(document.activeElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

// The list of pages is above the page where the screen has no room beside it.
if (!matchMedia('(min-width: 62rem)').matches) document.querySelector('.pages details').open = false;
box.hidden = false;
input.addEventListener('input', search);
input.addEventListener('focus', search);
input.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') results.querySelector('a')?.click();
});
box.addEventListener('keydown', move);
document.addEventListener('click', ({ target }) => {
  if (!box.contains(target)) close();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input')) return;
  event.preventDefault();
  input.focus();
});
