// The services that the sidecar calls: a lamp each, with its state in words.

import { byId, el, foreign, list, pill, show, text } from './dom.js';
import { since, span } from './format.js';

const names = { redis: 'Redis', kafka: 'Kafka', profiles: 'Profile service', hot_keys: 'Hot-key source', ledger: 'Ledger' };
const tones = { ok: 'good', failing: 'bad', unknown: 'calm', off: 'calm' };

export function draw({ status }) {
  const all = status.dependencies ?? {};
  const lamps = Object.keys(names).filter((key) => all[key]).map((key) => ({ key, name: names[key], ...all[key] }));
  show(byId('lamps'), lamps.length > 0);
  list(byId('lamps'), lamps, (d) => d.key, make, update);
  const failing = lamps.filter((d) => d.state === 'failing').map((d) => d.name);
  text(byId('lamps-spoken'), failing.length ? `Failing: ${failing.join(', ')}` : ''); // a live region, without figures
}

function make(d) {
  return el('li', { 'data-service': d.key },
    el('p', { class: 'lamp-head' }, el('strong', {}, d.name), el('span', { class: 'lamp-state' })),
    el('p', { class: 'lamp-figures' }),
    el('p', { class: 'lamp-error' }, foreign('')));
}

function update(item, d) {
  const [head, figures, error] = item.children;
  pill(head.children[1], d.state, tones[d.state] ?? 'calm');
  text(figures, sentence(d));
  const why = d.state === 'ok' || noKafka(d) ? '' : d.last_error ?? '';
  text(error.firstElementChild, why);
  error.title = why; // two lines are shown
  show(error, why !== '');
}

const noKafka = (d) => d.key === 'kafka' && d.state === 'off';

const latency = (ms) => (ms < 10 ? `${ms.toFixed(1)} ms` : span(ms));

function sentence(d) {
  const answered = d.last_ok ? `last answered ${since(d.last_ok)} ago` : 'has not answered yet';
  switch (d.state) {
    case 'ok': return d.latency_ms === null ? 'answers' : `answers in ${latency(d.latency_ms)}`;
    case 'failing': return `for ${since(d.since)}, ${answered}`;
    case 'unknown': return d.last_ok ? `not called lately, ${answered}` : 'not called yet';
    default:
      if (!noKafka(d)) return 'not used';
      return d.last_error?.startsWith('log:') ? d.last_error : 'no Kafka: no board is kept whole here';
  }
}
