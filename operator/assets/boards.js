// Super-hot boards: those that are, or are to be, whole in local memory.

import { open as openChange } from './dialog.js';
import { button, byId, pill, show, table, text, tone } from './dom.js';
import { bytes, count, none, rate, span } from './format.js';
import { tones } from './replay.js';
import { choose } from './top.js';

const columns = [
  { label: 'Board', name: 'id', fill: (cell, b) => button(cell, b.board, `Show the top of ${b.board}`, () => choose(b.board), 'link') },
  { label: 'State', fill: (cell, b) => pill(cell, b.state, tones[b.state] ?? 'calm') },
  { label: 'Members', name: 'number', fill: (cell, b) => text(cell, count(b.members)) },
  { label: 'Memory', name: 'number', fill: (cell, b) => text(cell, bytes(b.local?.bytes)) },
  { label: 'Requests', name: 'number', fill: (cell, b) => text(cell, rate(b.asked)) },
  { label: 'Updates', name: 'number', fill: (cell, b) => text(cell, rate(b.updates_per_s)) },
  { label: 'Behind', name: 'number', fill: (cell, b) => text(cell, behind(b)) },
  { label: 'Age', name: 'number', fill: (cell, b) => text(cell, b.state === 'open' ? span(b.local?.age_ms) : none) },
  { label: 'Answered by', fill: (cell, b) => text(cell, sources[b.source]) },
  { label: 'Change', name: 'act', fill: (cell, b) => button(cell, 'Change…', `Change ${b.board}`, () => openChange({ kind: 'match', name: b.board })) },
];

const sources = { local: 'memory', hot: 'hot page', redis: 'Redis' };

export function draw({ status, hot }) {
  const local = new Map((status.local_boards ?? []).map((b) => [b.board, b]));
  const asked = new Map((hot.boards ?? []).map((b) => [b.board, b.rate]));
  const pages = new Set((hot.boards ?? []).filter((b) => b.state === 'hot' && b.page_age_ms >= 0).map((b) => b.board));
  const boards = (status.boards ?? []).map((b) => ({
    ...b,
    local: local.get(b.board),
    asked: asked.get(b.board), // not known of boards that are asked for seldom
    source: b.state === 'open' ? 'local' : pages.has(b.board) ? 'hot' : 'redis',
  }));
  show(byId('superhot-none'), boards.length === 0);
  show(byId('superhot-table'), boards.length > 0);
  table(byId('superhot-rows'), columns, boards, (b) => b.board);
  memory(status.memory);
}

// memory says what boards may take, and which were refused for want of it.
function memory(m) {
  const line = byId('refused');
  if (!m) {
    text(line, '');
    return;
  }
  const refused = Array.isArray(m.refused) ? m.refused : [];
  const names = refused.slice(0, 5).map((r) => r.board ?? r).join(', ');
  const budget = m.budget_bytes > 0 ? `Memory: ${bytes(m.used_bytes)} of ${bytes(m.budget_bytes)}.` : '';
  tone(text(line, refused.length ? `${budget} No room for ${names}${refused.length > 5 ? ` and ${refused.length - 5} more` : ''}: Redis answers them.` : budget),
    refused.length ? 'warn' : 'calm');
}

// behind says how many updates of Redis's count are not here yet.
function behind(b) {
  return b.want > 0 ? count(Math.max(b.want - b.have, 0)) : none;
}
