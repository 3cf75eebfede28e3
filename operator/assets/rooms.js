// The modes that operators have set for rooms and boards, and where they are set.

import { unset } from './changes.js';
import { confirm, open as openChange } from './dialog.js';
import { button, byId, el, foreign, list, pill, show, table, text, tone } from './dom.js';
import { count, many, since } from './format.js';
import { choose } from './top.js';

const modes = { 'super-hot': ['super-hot', 'good'], hot: ['pinned', 'busy'], blocked: ['blocked', 'bad'] };
const most = 100; // rows
const mostBoards = 6; // of one room

const columns = [
  { label: 'Room or board', fill: name },
  { label: 'Setting', fill: (cell, r) => pill(cell, ...(modes[r.mode] ?? [r.mode, 'calm'])) },
  { label: 'Boards', fill: boards },
  { label: 'Set by', fill: (cell, r) => text(cell, setBy(r)) },
  { label: 'Change', name: 'act', fill: act },
];

export function draw({ rooms }) {
  const rows = [
    ...array(rooms.rooms).map((r) => ({ ...r, kind: 'uid', name: r.uid })),
    ...array(rooms.boards).map((r) => ({ ...r, kind: 'match', name: r.match })),
  ];
  show(byId('rooms-none'), rows.length === 0);
  show(byId('rooms-table'), rows.length > 0);
  text(byId('rooms-more'), rows.length > most ? `and ${count(rows.length - most)} more, which rankcache rooms list shows` : '');
  table(byId('rooms-rows'), columns, rows.slice(0, most), (r) => `${r.kind} ${r.source} ${r.name}`);
  sources(rooms);
}

const array = (value) => (Array.isArray(value) ? value : []);

function name(cell, r) {
  if (!cell.firstChild) cell.append(el('span', { class: 'kind' }), foreign('', 'id'));
  text(cell.firstChild, kindOf(r));
  text(cell.lastChild, r.name);
}

function kindOf(r) {
  if (r.kind === 'uid') return 'room ';
  return /[*?[\\]/.test(r.name) ? 'pattern ' : 'board ';
}

function boards(cell, r) {
  if (r.kind !== 'uid') {
    text(cell, kindOf(r) === 'pattern ' ? 'all that match' : 'itself');
    return;
  }
  if (!Array.isArray(r.boards) || r.boards.length === 0) {
    text(cell, Array.isArray(r.boards) ? 'none now' : 'read from Redis');
    return;
  }
  if (!cell.querySelector('ul')) cell.replaceChildren(el('ul', { class: 'chips' }));
  const chips = r.boards.slice(0, mostBoards);
  list(cell.firstChild, chips, (b) => b, () => el('li'), (item, b) => button(item, b, `Show the top of ${b}`, () => choose(b), 'link id'));
  const more = r.boards.length - chips.length;
  cell.firstChild.dataset.more = more > 0 ? `and ${more} more` : '';
}

function setBy(r) {
  const where = { dynamic: 'run time', class: 'class of the rooms file' }[r.source] ?? 'rooms file';
  return r.overridden ? `${where}, overridden` : where;
}

function act(cell, r) {
  if (r.source !== 'dynamic') {
    button(cell, 'Change…', `Change ${r.name}`, () => openChange({ kind: r.kind, name: r.name }));
    return;
  }
  button(cell, 'Unset…', `Unset ${r.name}`, () => confirm(unset(r.kind, r.name)));
}

// sources shows the state of the rooms file and of the shared hash.
function sources({ file, dynamic, problem }) {
  const line = byId('rooms-file');
  if (problem) tone(text(line, problem.message), 'bad');
  else if (file?.error) tone(text(line, `Rooms file refused, the last good one stays in force: ${file.error}`), 'bad');
  else if (file?.file) tone(text(line, `Rooms file ${file.file}: ${many(file.rooms, 'room')}, read ${since(file.loaded_at)} ago.`), 'calm');
  else tone(text(line, 'No rooms file (--rooms).'), 'calm');
  const shared = byId('rooms-dynamic');
  if (dynamic?.error) tone(text(shared, `Set at run time: Redis key ${dynamic.key} can’t be read, the last known entries stay: ${dynamic.error}`), 'warn');
  else if (dynamic?.key) tone(text(shared, `Set at run time: Redis key ${dynamic.key}, ${many(dynamic.entries, 'entry', 'entries')}, read ${since(dynamic.read_at)} ago.`), 'calm');
  else text(shared, '');
}
