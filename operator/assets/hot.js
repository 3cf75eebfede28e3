// Hot boards, those that may become so, and the fleet's verdict.

import { open as openChange } from './dialog.js';
import { button, byId, pill, show, table, text, tone } from './dom.js';
import { count, many, none, rate, since, span } from './format.js';
import { choose } from './top.js';

const most = 50; // rows; the answer is sorted, hottest first

const tones = { hot: 'good', cooling: 'calm', watched: 'busy', barred: 'warn' };
const order = { hot: 0, barred: 1, watched: 2, cooling: 3 };
const causes = { 'own-rate': 'own requests', verdict: 'fleet’s verdict', pinned: 'pinned' };

const columns = [
  { label: 'Board', name: 'id', fill: (cell, b) => button(cell, b.board, `Show the top of ${b.board}`, () => choose(b.board), 'link') },
  { label: 'State', fill: (cell, b) => pill(cell, b.state, tones[b.state] ?? 'calm') },
  { label: 'Because of', fill: (cell, b) => text(cell, causes[b.cause] ?? b.cause ?? none) },
  { label: 'Requests', name: 'number', fill: (cell, b) => text(cell, rate(b.rate)) },
  { label: 'Fleet’s count', name: 'number', fill: (cell, b) => text(cell, b.api_count > 0 ? count(b.api_count) : none) },
  { label: 'For', name: 'number', fill: (cell, b) => text(cell, since(b.since)) },
  { label: 'Page age', name: 'number', fill: (cell, b) => text(cell, span(b.page_age_ms)) },
  { label: 'Page reads', name: 'number', fill: (cell, b) => text(cell, b.page_age_ms >= 0 ? count(b.hits) : none) },
  { label: 'Change', name: 'act', fill: (cell, b) => button(cell, 'Change…', `Change ${b.board}`, () => openChange({ kind: 'match', name: b.board })) },
];

export function draw({ status, hot }) {
  const whole = new Set((status.boards ?? []).filter((b) => b.state === 'open').map((b) => b.board)); // in the table above
  const rows = (hot.boards ?? []).filter((b) => !whole.has(b.board)).sort((a, b) => (order[a.state] ?? 9) - (order[b.state] ?? 9) || b.rate - a.rate);
  show(byId('hot-none'), rows.length === 0);
  show(byId('hot-table'), rows.length > 0);
  table(byId('hot-rows'), columns, rows.slice(0, most), (b) => b.board);
  text(byId('hot-more'), rows.length > most ? `and ${count(rows.length - most)} more, less busy` : '');
  verdict(hot);
}

function verdict({ verdict: v, enabled, problem }) {
  const line = byId('verdict');
  if (problem) {
    tone(text(line, problem.message), 'bad');
  } else if (enabled === false) {
    tone(text(line, 'The hot tier is switched off (--hot=false).'), 'calm');
  } else if (!v) {
    tone(text(line, 'No verdict of the fleet: this sidecar’s own counters decide alone.'), 'calm');
  } else {
    const what = `Verdict of ${v.source}, asked by ${v.poller}: ${many(v.boards?.length ?? 0, 'hot board')}, first seen ${span(v.seen_ago_ms)} ago`;
    tone(text(line, v.counts ? `${what}.` : `${what}. That is too old, it decides nothing.`), v.counts ? 'good' : 'warn');
  }
}
