// Plots of the last 15 minutes. The sidecar keeps the figures, so they are there when the page is opened.

import { get } from './api.js';
import { byId, el, list, text } from './dom.js';
import { rate, span } from './format.js';
import { spared } from './summary.js';

const svg = 'http://www.w3.org/2000/svg';
const width = 300;
const height = 60;
const points = 180;

const ms = (v) => span(v);
const plots = [
  { key: 'reads', name: 'Reads', of: (p) => sum(p.local, p.hot, p.redis), unit: rate },
  { key: 'memory', name: 'Answered from memory', of: share, unit: (v) => `${v.toFixed(v < 99.95 ? 1 : 0)} %`, least: 100 },
  { key: 'failed', name: 'Failed requests', of: (p) => p.failed, unit: rate, bad: (v) => v > 0 },
  { key: 'p99', name: 'p99 of requests', of: (p) => p.p99_ms, unit: ms, bad: (v) => v > 50 },
  { key: 'age', name: 'Oldest local copy', of: (p) => (p.age_s === null ? null : p.age_s * 1000), unit: ms, bad: (v) => v > 15000 },
  { key: 'behind', name: 'Updates behind', of: (p) => p.behind, unit: (v) => v.toFixed(0) },
  { key: 'updates', name: 'Updates applied', of: (p) => p.updates, unit: rate },
  { key: 'redis', name: 'p99 of Redis’s answers', of: (p) => p.redis_p99_ms, unit: ms },
];

const sum = (...all) => (all.every((v) => v === null) ? null : all.reduce((a, v) => a + (v ?? 0), 0));

function share(p) {
  const all = sum(p.local, p.hot, p.redis);
  return all ? 100 * sum(p.local, p.hot) / all : null;
}

let asked = 0;

// load asks at most every five seconds, as often as there is a new point.
export async function load() {
  if (Date.now() - asked < 5000) return;
  asked = Date.now();
  const history = await get('/history');
  if (history.points.length) spared(history.points.at(-1));
  list(byId('plots'), plots, (plot) => plot.key, make, (item, plot) => update(item, plot, history.points));
}

function make(plot) {
  const picture = document.createElementNS(svg, 'svg');
  picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
  picture.setAttribute('preserveAspectRatio', 'none');
  picture.setAttribute('aria-hidden', 'true');
  picture.append(document.createElementNS(svg, 'path'));
  return el('li', { 'data-plot': plot.key }, el('p', { class: 'plot-head' }, el('span', {}, plot.name), el('strong', {})), picture, el('p', { class: 'hint' }));
}

function update(item, plot, all) {
  const values = all.map(plot.of);
  const known = values.filter((v) => v !== null);
  const [head, picture, range] = item.children;
  const last = values.at(-1) ?? null;
  text(head.children[1], last === null ? '–' : plot.unit(last));
  head.children[1].dataset.tone = last !== null && plot.bad?.(last) ? 'bad' : '';
  const peak = Math.max(...known, plot.least ?? 0) || 1;
  const highest = scale(known, peak);
  picture.toggleAttribute('hidden', known.length === 0);
  text(range, known.length ? `${plot.unit(Math.min(...known))} to ${plot.unit(Math.max(...known))} in ${span(all.length * 5000)}${highest < peak ? `; drawn up to ${plot.unit(highest)}` : ''}` : 'nothing yet');
  picture.firstChild.setAttribute('d', line(values.map((v) => (v === null ? v : Math.min(v, highest))), highest));
}

// scale returns the value at the top: the highest, unless that is a peak beside which the rest would be flat.
export function scale(known, peak) {
  const usual = [...known].sort((a, b) => a - b)[Math.floor(known.length * 0.9)] ?? 0;
  return usual > 0 && peak > 4 * usual ? 2 * usual : peak;
}

// line leaves a gap where there is nothing to tell.
function line(values, highest) {
  let d = '';
  let pen = 'M';
  values.forEach((v, i) => {
    if (v === null) { pen = 'M'; return; }
    const x = ((points - values.length + i) * width) / (points - 1);
    d += `${pen}${x.toFixed(1)} ${(height - 2 - (v / highest) * (height - 4)).toFixed(1)}`;
    pen = 'L';
  });
  return d;
}
