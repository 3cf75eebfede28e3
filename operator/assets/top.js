// The live top of one board, as the app would get it.

import { get, getAged, Problem } from './api.js';
import * as compare from './compare.js';
import * as member from './member.js';
import { byId, el, foreign, list, show, table, text } from './dom.js';
import { count, none, score, since, span, visible } from './format.js';
import * as stream from './stream.js';

const rows = 10;
const shades = 8; // of the discs behind initials

let board = ''; // chosen by the operator, or the first that is worth showing
let chosen = false;
let again = () => {};

const columns = [
  { label: 'Rank', name: 'rank', fill: (cell, e) => text(cell, count(e.rank)) },
  { label: 'Member', name: 'who', fill: who },
  { label: 'Score', name: 'number', fill: points },
];

export function start(refresh) {
  again = refresh;
  const field = byId('top-board');
  byId('top-form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (field.value.trim()) choose(field.value.trim());
  });
  field.addEventListener('change', () => { if (field.value.trim()) choose(field.value.trim()); });
  const fromAddress = () => {
    const named = new URLSearchParams(location.hash.slice(1)).get('board');
    if (named && named !== board) choose(named);
  };
  addEventListener('hashchange', fromAddress);
  fromAddress();
}

// shown returns the id of the board that is shown.
export const shown = () => board;

// choose shows another board. Its name stays in the address, for a reload.
export function choose(name) {
  board = name;
  chosen = true;
  compare.reset();
  member.reset();
  byId('top-board').value = name;
  history.replaceState(null, '', `#${new URLSearchParams({ board: name })}`);
  again();
}

// load draws the board: as it is pushed where the sidecar has streams (--rpc), else
// by asking for it, as until the first event has come. An error that the sidecar answers is
// shown in its place; any other is the caller's.
export async function load({ status, hot, rooms }) {
  const known = knownBoards(status, hot, rooms);
  list(byId('top-known'), known.slice(0, 200), (b) => b, (b) => el('option', { value: b }), () => {});
  if (!chosen && known.length > 0 && !isOpen(status, board)) byId('top-board').value = board = known[0];
  show(byId('top-none'), board === '');
  show(byId('top-some'), board !== '');
  if (board === '') return stream.stop();
  const asked = board;
  const id = encodeURIComponent(asked);
  if (status.live?.streams) stream.follow(`/v1/boards/${id}/live?limit=${rows}${status.profiles ? '&profiles=1' : ''}`, draw, aged);
  try {
    const [answer, details] = await Promise.all([stream.live() ? undefined : getAged(`/boards/${id}/top?limit=${rows}`), get(`/status/${id}`)]);
    if (asked !== board) return;
    if (answer && !stream.live()) draw(answer);
    if (answer) aged(answer.age_ms);
    proof(details);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (asked === board) fail(error);
  }
}

const isOpen = (status, name) => (status.boards ?? []).some((b) => b.board === name && b.state === 'open');

// knownBoards are what the field proposes: those that are open first.
function knownBoards(status, hot, rooms) {
  const boards = status.boards ?? [];
  const named = (rooms.rooms ?? []).flatMap((r) => r.boards ?? []);
  return [...new Set([
    ...boards.filter((b) => b.state === 'open').map((b) => b.board), ...boards.map((b) => b.board),
    ...(hot.boards ?? []).map((b) => b.board), ...named,
  ])];
}

function draw(answer) {
  show(byId('top-error'), false);
  show(byId('top-table'), answer.entries.length > 0);
  show(byId('top-empty'), answer.entries.length === 0);
  table(byId('top-rows'), columns, answer.entries, (e) => e.member);
  text(byId('top-source'), { local: 'local memory', hot: 'hot page', redis: 'Redis', ledger: 'ledger, as Redis is away' }[answer.source] ?? answer.source);
  text(byId('top-seq'), answer.seq === null ? none : count(answer.seq));
  text(byId('top-total'), count(answer.total));
}

const aged = (ms) => text(byId('top-age'), span(ms));

// proof shows both sides of the comparison with Redis: run, seq and checksum.
function proof({ state, origin_state: origin, origin_state_at: at, proved_state: proved, proved_at: provedAt }) {
  show(byId('top-proof'), Boolean(state || origin));
  text(byId('proof-here'), state ?? none);
  text(byId('proof-origin'), origin ?? none);
  text(byId('proof-origin-at'), origin ? `${since(at)} ago` : '');
  text(byId('proof-equal'), proved ? `at seq ${count(Number(proved.split('-')[1]))}, found ${since(provedAt)} ago` : 'not compared by their sums');
}

function fail(problem) {
  show(byId('top-error'), true);
  text(byId('top-error'), problem.code === 'blocked' ? 'This board is blocked: its reads are refused.' : `${problem.title}: ${problem.message}`);
  show(byId('top-table'), false);
  show(byId('top-empty'), false);
  for (const id of ['top-source', 'top-seq', 'top-total', 'top-age']) text(byId(id), none);
  proof({});
}

// who shows the nick with the id below it, or the id alone. The avatar is the
// nick's initials: a picture would have to be fetched from another host, which
// would learn which viewer looks at which board, and which this page may not call.
function who(cell, e) {
  if (!cell.firstChild) {
    cell.append(el('span', { class: 'disc', 'aria-hidden': 'true' }), el('span', { class: 'names' }, foreign('', 'nick'), foreign('', 'member')));
  }
  const nick = nickOf(e.profile);
  const [disc, names] = cell.children;
  text(disc, initials(nick || e.member));
  disc.dataset.shade = shadeOf(e.member);
  text(names.firstChild, visible(nick || e.member));
  text(names.lastChild, nick ? visible(e.member) : '');
}

const nickOf = (profile) => (profile && typeof profile.nick === 'string' ? profile.nick.trim().slice(0, 80) : '');

function initials(name) {
  const words = name.split(/\s+/).filter((w) => /[\p{L}\p{N}]/u.test(w));
  return words.slice(0, 2).map((w) => [...w.replace(/^[^\p{L}\p{N}]+/u, '')][0] ?? '').join('').toUpperCase();
}

function shadeOf(member) {
  let sum = 0;
  for (const c of member) sum = (sum * 31 + c.codePointAt(0)) >>> 0;
  return String(sum % shades);
}

// points marks a score that has changed since the last look.
function points(cell, e) {
  const now = score(e.score);
  const rose = cell.textContent !== '' && cell.textContent !== now;
  text(cell, now);
  cell.classList.toggle('changed', rose);
}
