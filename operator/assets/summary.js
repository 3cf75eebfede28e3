// The head of the page: state, reason, uptime, version, and the row of figures.

import { byId, text, tone } from './dom.js';
import { bytes, count, none, percent, rate, span } from './format.js';
import { Spark } from './spark.js';

const tones = { ready: 'good', starting: 'busy', stopping: 'warn' };
const updates = new Spark(byId('spark-updates'));

export function draw({ status }) {
  state(status.state, status.reason);
  text(byId('uptime'), span(status.uptime_s * 1000));
  text(byId('version'), status.version);
  text(byId('name'), status.name);
  figures(status);
}

// lost shows that the sidecar does not answer.
export function lost() { state('no answer', 'the sidecar is not running, or the way to it is cut'); }

function state(word, reason) {
  tone(text(byId('state'), word), tones[word] ?? 'bad'); // a live region: spoken when it changes
  text(byId('reason'), reason ?? '');
  document.title = word === 'ready' ? 'rankcache' : `${word} · rankcache`;
}

function figures(status) {
  const { local, boards_total: total, boards_open: open, updates_per_s: applied } = status;

  text(byId('sum-open'), total ? `${count(open)} of ${count(total)}` : '0');
  text(byId('sum-members'), count(local.members));
  text(byId('sum-bytes'), bytes(local.bytes));
  text(byId('sum-updates'), rate(applied));
  text(byId('sum-age'), span(local.oldest_ms));
  updates.push(applied);
}

// spared shows what of a point of the history (history.js) Redis is spared: the reads of all protocols before, its calls after.
export function spared({ local, hot, redis, redis_calls: calls }) {
  const reads = (local ?? 0) + (hot ?? 0) + (redis ?? 0);
  const left = Math.max(reads - (calls ?? 0), 0);
  text(byId('sum-reads'), rate(reads));
  text(byId('sum-spared'), reads ? `${percent(left, reads)}, ${count(left)} calls/s` : none);
  text(byId('sum-calls'), reads ? `${rate(reads)} read, ${rate(calls ?? 0)} asked of Redis` : 'no reads in the last seconds');
}
