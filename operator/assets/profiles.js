// The profile cache, and the form that drops one profile.

import { drop } from './changes.js';
import { confirm } from './dialog.js';
import { byId, show, text, tone } from './dom.js';
import { bytes, count, percent } from './format.js';

const tones = { closed: 'good', 'half-open': 'warn', open: 'bad' };
const words = { closed: 'answering', 'half-open': 'being tried again', open: 'failing, not called now' };

export function draw({ status }) {
  const p = status.profiles;
  show(byId('profiles-none'), !p);
  show(byId('profiles-some'), Boolean(p));
  if (!p) return;
  const rows = p.hits + p.stale + p.misses;
  tone(text(byId('profiles-breaker'), words[p.breaker] ?? p.breaker), tones[p.breaker] ?? 'calm');
  text(byId('profiles-hits'), percent(p.hits + p.stale, rows));
  text(byId('profiles-rows'), count(rows));
  text(byId('profiles-missing'), count(p.missing));
  text(byId('profiles-loads'), p.failed ? `${count(p.loads)}, ${count(p.failed)} failed` : count(p.loads));
  text(byId('profiles-bytes'), `${bytes(p.bytes)} of ${bytes(p.budget)}`);
  const meter = byId('profiles-meter');
  meter.max = p.budget;
  meter.value = p.bytes;
}

export function start() {
  byId('drop').addEventListener('submit', (event) => {
    event.preventDefault();
    const member = byId('drop-member').value.trim();
    if (member) confirm(drop(member));
  });
}
