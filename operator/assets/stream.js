// The live page of one board, as the sidecar pushes it. There is one stream at a
// time: a browser opens six connections to a host, and the loop needs the others.

const silence = 15_000; // ms without an event, of which one comes each 5 s
const pause = 10_000; // ms until a stream that ended or failed is opened again

let source; // the EventSource, if one is open
let path = '';
let page; // as the last event left it; undefined until the first one
let heard = 0; // when the last event came
let notBefore = 0; // when the same path may be opened again

// follow keeps a stream of a path, and calls draw with each page and age with each
// age in milliseconds. It is called again and again; a stream that has ended or is
// silent is opened anew.
export function follow(wanted, draw, age) {
  if (wanted !== path) {
    stop();
    path = wanted;
    notBefore = 0;
  }
  if (source && Date.now() - heard > silence) stop();
  if (!source && !document.hidden && Date.now() >= notBefore) open(draw, age);
}

// live reports whether pages are pushed, so that the loop need not ask.
export const live = () => page !== undefined;

export function stop() {
  source?.close();
  source = page = undefined;
}

function open(draw, age) {
  const opened = source = new EventSource(path);
  heard = Date.now();
  const on = (name, act) => opened.addEventListener(name, (event) => {
    if (opened !== source) return;
    heard = Date.now();
    act(event.data);
  });
  on('page', (data) => draw(page = JSON.parse(data)));
  on('diff', (data) => {
    const next = applied(page, JSON.parse(data));
    if (next) draw(page = next);
    else again(0);
  });
  on('age', (data) => age(JSON.parse(data).age_ms));
  on('end', () => again(pause));
  on('error', () => again(pause)); // the browser's own retry would send the last id
}

function again(wait) {
  stop();
  notBefore = Date.now() + wait;
}

// applied returns the page after a diff; undefined if that is of another version.
function applied(before, { base, len, rows, ...rest }) {
  if (before?.id !== base) return undefined;
  const entries = before.entries.slice(0, len);
  for (const { at, ...row } of rows) entries[at] = row;
  return { ...rest, entries };
}

document.addEventListener('visibilitychange', () => { if (document.hidden) stop(); });
