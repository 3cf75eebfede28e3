// Super-hot boards: those that are, or are to be, whole in local memory. There may be
// thousands, so the table has a page of those that match.

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

const sources = { local: 'memory', hot: 'hot page', redis: 'Redis', ledger: 'ledger', final: 'final' };

const most = 50; // rows
const pause = 250; // ms after the last key until what was typed is searched

let start = 0; // rows before the page
let again = () => {};

// head is requested for the whole page: its first boards are those of an unfiltered table.
export const head = `/status?limit=${most}`;

// path returns the path of the table's request.
export function path() {
  const query = new URLSearchParams({ limit: most });
  const [match, state] = [byId('boards-match').value.trim(), byId('boards-state').value];
  if (start > 0) query.set('start', start);
  if (match) query.set('match', /[*?[\\]/.test(match) ? match : `*${match}*`);
  if (state) query.set('state', state);
  return `/status?${query}`;
}

// begin wires the search; refresh is called when another page is wanted.
export function begin(refresh) {
  again = refresh;
  let timer;
  const changed = () => { clearTimeout(timer); turn(-start); };
  byId('boards-form').addEventListener('submit', (event) => { event.preventDefault(); changed(); });
  byId('boards-state').addEventListener('change', changed);
  byId('boards-match').addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(changed, pause); });
  byId('boards-back').addEventListener('click', () => turn(-most));
  byId('boards-next').addEventListener('click', () => turn(most));
}

function turn(rows) {
  start = Math.max(start + rows, 0);
  again();
}

export function draw({ status, listed, hot }) {
  show(byId('superhot-none'), status.boards_total === 0);
  show(byId('boards-form'), status.boards_total > 0);
  memory(status.memory);
  place(listed);
  rows(listed, hot);
}

// place shows which rows are listed, and of how many.
function place({ problem, boards, boards_start: from, boards_matched: matched }) {
  const line = byId('boards-place');
  show(byId('boards-back'), from > 0);
  show(byId('boards-next'), from + most < matched);
  tone(line, problem ? 'bad' : 'calm');
  if (problem) text(line, problem.message);
  else if (matched === 0) text(line, byId('boards-form').hidden ? '' : 'No board matches.');
  else text(line, boards.length < matched ? `${count(from + 1)} to ${count(from + boards.length)} of ${count(matched)}, those in trouble and then the largest first` : '');
  if (from > 0 && boards.length === 0 && start === from) start = 0; // they are fewer now
}

function rows(status, hot) {
  const local = new Map((status.local_boards ?? []).map((b) => [b.board, b]));
  const asked = new Map((hot.boards ?? []).map((b) => [b.board, b.rate]));
  const bypassed = (board) => (status.bypasses ?? []).some((p) => p.all || p.board === board);
  const pages = new Set((hot.boards ?? []).filter((b) => b.state === 'hot' && b.page_age_ms >= 0).map((b) => b.board));
  const boards = (status.boards ?? []).map((b) => ({
    ...b,
    local: local.get(b.board),
    asked: asked.get(b.board), // not known of boards with few reads
    source: bypassed(b.board) ? 'redis' : b.state === 'open' ? 'local' : pages.has(b.board) ? 'hot' : 'redis',
  }));
  show(byId('superhot-table'), boards.length > 0);
  table(byId('superhot-rows'), columns, boards, (b) => b.board);
}

// memory shows the memory budget of boards, and which boards it refused.
function memory(m) {
  const line = byId('refused');
  if (!m) {
    text(line, '');
    return;
  }
  const refused = Array.isArray(m.refused) ? m.refused : [];
  const names = refused.slice(0, 5).map((r) => r.board ?? r).join(', ');
  const more = (m.refused_boards ?? refused.length) - Math.min(refused.length, 5);
  const budget = m.budget_bytes > 0 ? `Memory: ${bytes(m.used_bytes)} of ${bytes(m.budget_bytes)}.` : '';
  tone(text(line, refused.length ? `${budget} No room for ${names}${more > 0 ? ` and ${count(more)} more` : ''}: Redis answers them.` : budget),
    refused.length ? 'warn' : 'calm');
}

// behind formats how many of Redis's updates have not arrived yet.
function behind(b) {
  return b.want > 0 ? count(Math.max(b.want - b.have, 0)) : none;
}
