// Boards on their way into local memory: a bar each, until they are open.

import { byId, el, foreign, list, pill, show, text } from './dom.js';
import { count, many, rate, span } from './format.js';

const most = 8; // bars; the answer has the boards in trouble first
const linger = 4000; // ms that a bar stays after its board has opened
const opened = new Map(); // by board: when it was seen to open
let behind = new Set(); // boards that were not open at the last look

export const tones = { open: 'good', waiting: 'calm', replaying: 'busy', checking: 'busy', snapshot: 'busy', 'given-up': 'warn', lost: 'bad' };

export function draw({ status }) {
  const boards = status.boards ?? [];
  const now = Date.now();
  for (const b of boards) if (b.state === 'open' && behind.has(b.board)) opened.set(b.board, now);
  behind = new Set(boards.filter((b) => b.state !== 'open').map((b) => b.board));
  const shown = boards.filter((b) => b.state !== 'open' || now - (opened.get(b.board) ?? 0) < linger).slice(0, most);
  const more = status.boards_total - status.boards_open - shown.filter((b) => b.state !== 'open').length;
  show(byId('replay'), shown.length > 0);
  text(byId('replay-more'), more > 0 ? `and ${many(more, 'board')} more` : '');
  list(byId('replays'), shown, (b) => b.board, make, update);
}

function make(b) {
  return el('li', {},
    el('p', { class: 'replay-head' }, foreign(b.board, 'id'), el('span', { class: 'replay-state' }), el('span', { class: 'replay-share' })),
    el('progress', { 'aria-label': `Replay of ${b.board}` }),
    el('p', { class: 'replay-figures' }),
    el('p', { class: 'replay-reason' }));
}

function update(item, b) {
  const [head, bar, figures, reason] = item.children;
  pill(head.children[1], b.state, tones[b.state] ?? 'calm');
  const open = b.state === 'open';
  const share = open ? 1 : b.want > 0 ? Math.min(b.have / b.want, 1) : NaN;
  text(head.children[2], Number.isNaN(share) ? '' : `${Math.floor(share * 100)} %`);
  if (Number.isNaN(share)) bar.removeAttribute('value'); // not known: an indeterminate bar
  else if (bar.value !== share || !bar.hasAttribute('value')) bar.value = share;
  text(figures, sentence(b, open));
  text(reason, b.reason ?? '');
}

function sentence(b, open) {
  if (open) return `Open: ${count(b.members)} members are answered from local memory.`;
  const parts = [`${count(b.have)} of ${b.want > 0 ? count(b.want) : 'an unknown number of'} updates`];
  if (b.updates_per_s > 0) parts.push(rate(b.updates_per_s));
  if (b.eta_s > 0) parts.push(`about ${span(b.eta_s * 1000)} left`);
  return parts.join(' · ');
}
