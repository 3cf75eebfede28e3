// What an operator has Redis answer for a while, whatever copies are here: said above
// everything else, because it explains the rest.

import { endBypass } from './changes.js';
import { confirm } from './dialog.js';
import { button, byId, el, foreign, list, text } from './dom.js';
import { clock, many } from './format.js';

const most = 5; // lines

export function draw({ status }) {
  const all = status.bypasses ?? [];
  const lines = all.slice(0, most);
  if (all.length > most) lines.push({ more: all.length - most });
  list(byId('bypasses'), lines, (b) => (b.more ? 'more' : b.all ? '*' : b.board), make, update);
}

function make() {
  return el('li', { class: 'banner', 'data-tone': 'warn' }, el('span', {}, el('strong', {}, foreign('')), el('span', {})), el('span', {}));
}

function update(item, b) {
  const [words, act] = item.children;
  const [whom, rest] = words.children;
  if (b.more) {
    text(whom.firstChild, `and ${many(b.more, 'board')} more`);
    return;
  }
  text(whom.firstChild, b.all ? 'All boards' : b.board);
  text(rest, ` bypassed by ${b.by} since ${clock(Date.parse(b.from))}, until ${clock(Date.parse(b.until))}: Redis answers.`);
  button(act, 'End…', `End the bypass of ${b.all ? 'all boards' : b.board}`, () => confirm(endBypass(b)));
}
