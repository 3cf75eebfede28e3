// The dialog with a section of the runbooks, which are those of the version that runs.

import { getText } from './api.js';
import { byId, el, text } from './dom.js';
import { blocks } from './markdown.js';

const slug = (heading) => heading.toLowerCase().replace(/[^a-z0-9 -]/g, '').replaceAll(' ', '-');

let pages; // once they have come

// open shows the section with that heading, or the list of all if there is none.
export async function open(heading) {
  try {
    pages ??= await getText('/runbooks.md');
  } catch (error) {
    console.debug('no runbooks', error);
  }
  const [index, ...rest] = (pages ?? '# No answer\n\nThe sidecar has not sent its runbooks: close this, and try again.').split(/^## /m);
  const sections = new Map(rest.map((part) => [slug(part.slice(0, part.indexOf('\n'))), part]));
  show(sections.get(slug(heading)) ?? index.replace(/^# /, ''));

  function show(section) {
    const [title, ...lines] = section.split('\n');
    text(byId('runbook-title'), title);
    byId('runbook-text').replaceChildren(...blocks(lines.join('\n'), link));
    byId('runbook-text').scrollTop = 0;
    if (!byId('runbook').open) byId('runbook').showModal();
  }

  // link leads to another section here; of other pages it tells the name.
  function link(words, target) {
    const anchor = target.split('#')[1];
    if (target.startsWith('../') && !target.startsWith('../RUNBOOKS.md')) return el('span', {}, ...words, el('span', { class: 'hint' }, ` (docs/${target.replace('../', '')})`));
    const node = el('button', { type: 'button', class: 'link', 'data-section': anchor ?? '' }, ...words);
    const section = anchor ? sections.get(anchor) : index.replace(/^# /, '');
    if (section) node.dataset.found = 'yes';
    node.addEventListener('click', () => show(section));
    return node;
  }
}

export function start() { byId('runbook-close').addEventListener('click', () => byId('runbook').close()); }
