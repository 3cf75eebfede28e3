// The latest lines of the log, the newest first.

import { get } from './api.js';
import { byId, el, foreign, list, pill, text } from './dom.js';
import { clock } from './format.js';

const most = 100;
const tones = { ERROR: 'bad', WARN: 'warn', INFO: 'calm' };

let asked = 0;

export async function load() {
  if (Date.now() - asked < 2000) return;
  asked = Date.now();
  const { events } = await get('/events');
  const latest = events.slice(-most).reverse();
  const seen = new Map(); // two lines of one moment and text are two rows
  for (const e of latest) {
    const key = JSON.stringify(e);
    seen.set(key, (seen.get(key) ?? 0) + 1);
    e.key = `${key}#${seen.get(key)}`;
  }
  list(byId('events'), latest, (e) => e.key, make, () => {});
  text(byId('events-count'), latest.length ? `${latest.length} of the last hour` : 'nothing in the last hour');
}

function make(e) {
  const { time, level, msg, key, ...rest } = e;
  const item = el('li', {}, el('span', { class: 'event-time' }, clock(Date.parse(time))), el('span', {}), el('span', { class: 'event-text' }));
  pill(item.children[1], level.toLowerCase(), tones[level] ?? 'calm');
  const facts = Object.entries(rest).map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`).join(' ');
  item.children[2].append(el('strong', {}, foreign(msg)), ' ', foreign(facts));
  return item;
}
