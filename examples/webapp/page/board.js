// The page of one board: it follows the app's stream and moves the rows.
const still = matchMedia('(prefers-reduced-motion: reduce)');
const rows = document.getElementById('rows');
const state = document.getElementById('state');
const number = new Intl.NumberFormat();
const name = decodeURIComponent(location.pathname.split('/').pop());
let page = { id: '', entries: [] };
let shownAt; // when the page came

document.getElementById('board').textContent = name;
document.title = `${name} · Leaderboard`;
follow();

// follow opens the stream. The browser opens it again by itself when it breaks, with Last-Event-ID.
function follow() {
  const stream = new EventSource(`/b/${encodeURIComponent(name)}/live`);
  const again = (wait) => {
    stream.close();
    setTimeout(follow, wait);
  };
  stream.addEventListener('page', (event) => show(JSON.parse(event.data)));
  stream.addEventListener('diff', (event) => {
    const { base, len, rows: changed, ...rest } = JSON.parse(event.data);
    if (base !== page.id) { // a diff of another page: without Last-Event-ID the page comes
      again(100);
      return;
    }
    const entries = page.entries.slice(0, len);
    for (const { at, ...row } of changed) entries[at] = row;
    show({ ...page, ...rest, entries });
  });
  stream.addEventListener('status', (event) => tell(JSON.parse(event.data)));
  stream.onerror = () => {
    tell({ live: false });
    if (stream.readyState === EventSource.CLOSED) again(1000 + 4000 * Math.random()); // an error status
  };
}

// tell changes the state only when its words do: it is read out.
function tell({ live, age, end }) {
  let words = `not live, as of ${shownAt?.toLocaleTimeString()}`;
  if (live) words = age?.age_ms > 10_000 ? `live, ${Math.round(age.age_ms / 1000)} s old` : 'live';
  else if (end?.code === 'blocked') words = 'this board is blocked';
  else if (end?.code === 'deleted') words = 'this board has ended';
  else if (!shownAt) words = 'connecting';
  if (state.textContent !== words) state.textContent = words;
  state.className = live ? 'live' : '';
}

function show(next) {
  const old = new Map([...rows.children].map((row) => [row.dataset.member, { row, top: row.offsetTop, score: row.dataset.score }]));
  page = next;
  shownAt = new Date();
  rows.replaceChildren(...page.entries.map((entry) => fill(old.get(entry.member)?.row ?? newRow(), entry)));
  document.getElementById('total').textContent = page.total === undefined ? '' : `${number.format(page.total)} members`;
  if (still.matches || old.size === 0) return;
  for (const row of rows.children) move(row, old.get(row.dataset.member));
}

function newRow() {
  const row = document.createElement('tr');
  row.append(...[0, 1, 2].map(() => document.createElement('td')));
  row.cells[0].append(Object.assign(document.createElement('span'), { className: 'rank' }));
  return row;
}

function fill(row, { rank, member, score }) {
  Object.assign(row.dataset, { rank, member, score });
  row.cells[0].firstChild.textContent = number.format(rank);
  row.cells[1].textContent = member;
  row.cells[2].textContent = number.format(score);
  return row;
}

// move lets a row slide from the place where it was, and shine if its score has changed.
function move(row, old) {
  const by = old ? old.top - row.offsetTop : row.offsetHeight;
  row.style.zIndex = by > 0 ? 1 : 0; // rows that rise pass over the others
  if (by !== 0) row.animate([{ transform: `translateY(${by}px)` }, { transform: 'none' }], { duration: 350, easing: 'ease-out' });
  if (old?.score !== row.dataset.score) row.animate([{ backgroundColor: 'var(--wash)' }, {}], 1200);
}
