// "Compare with Redis now": entry by entry, with how far it is.

import { byId, el, foreign, list, show, text } from './dom.js';
import { count, many, visible } from './format.js';

let running;

// start compares the board whose id the function returns.
export function start(board) {
  byId('compare').addEventListener('click', () => compare(board()));
}

// reset forgets the result: another board is shown.
export function reset() {
  running?.abort();
  running = undefined;
  show(byId('compare-result'), false);
}

async function compare(board) {
  reset();
  const mine = running = new AbortController();
  show(byId('compare-result'), true);
  text(byId('compare-words'), 'Reading…');
  list(byId('differences'), [], String);
  try {
    const answer = await fetch(`/boards/${encodeURIComponent(board)}/compare`, { method: 'POST', signal: mine.signal });
    if (!answer.ok) throw new Error(`the sidecar answers ${answer.status}`);
    for await (const line of lines(answer.body)) draw(line);
  } catch (error) {
    if (mine === running) text(byId('compare-words'), `Not compared: ${error.message}`);
  }
}

async function* lines(body) {
  let rest = '';
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const all = (rest + part.value).split('\n');
    rest = all.pop();
    yield* all.map((l) => JSON.parse(l));
  }
}

function draw(line) {
  const meter = byId('compare-meter');
  meter.max = Math.max(line.members, 1);
  meter.value = Math.min(line.compared, meter.max);
  text(byId('compare-words'), words(line));
  list(byId('differences'), line.differences ?? [], (d) => d.member, make, () => {});
}

function words(line) {
  if (line.error) return `Not compared: ${line.error}`;
  if (!line.done) return `${count(line.compared)} of ${count(line.members)} members are compared`;
  const differ = (line.differences?.length ?? 0) + (line.more ?? 0);
  return differ ? `${many(differ, 'member')} of ${count(line.members)} differ from Redis` : `All ${count(line.members)} members equal Redis’s${line.state ? `, at ${line.state}` : ''}`;
}

const shown = (score) => (score === null ? 'not on the board' : String(score));

function make(d) {
  return el('li', {}, foreign(visible(d.member), 'id'), `: raw score here ${shown(d.here_raw)}, in Redis ${shown(d.redis_raw)}`);
}
