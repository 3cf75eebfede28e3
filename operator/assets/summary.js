// The head of the page: state, reason, uptime, version, and the row of figures.

import { byId, text, tone } from './dom.js';
import { bytes, count, rate, span } from './format.js';
import { Spark } from './spark.js';

const tones = { ready: 'good', starting: 'busy', stopping: 'warn' };
const updates = new Spark(byId('spark-updates'));
const requests = new Spark(byId('spark-requests'));

export function draw({ status, hot }) {
  state(status.state, status.reason);
  text(byId('uptime'), span(status.uptime_s * 1000));
  text(byId('version'), status.version);
  text(byId('name'), status.name);
  figures(status, hot);
}

// lost shows that the sidecar does not answer.
export function lost() { state('no answer', 'the sidecar is not running, or the way to it is cut'); }

function state(word, reason) {
  tone(text(byId('state'), word), tones[word] ?? 'bad'); // a live region: spoken when it changes
  text(byId('reason'), reason ?? '');
  document.title = word === 'ready' ? 'rankcache' : `${word} · rankcache`;
}

function figures(status, hot) {
  const { local, boards_total: total, boards_open: open, updates_per_s: applied } = status;
  const asked = (hot.boards ?? []).reduce((sum, b) => sum + (b.rate ?? 0), 0);

  text(byId('sum-open'), total ? `${count(open)} of ${count(total)}` : '0');
  text(byId('sum-members'), count(local.members));
  text(byId('sum-bytes'), bytes(local.bytes));
  text(byId('sum-updates'), rate(applied));
  text(byId('sum-requests'), rate(asked));
  text(byId('sum-age'), span(local.oldest_ms));
  updates.push(applied);
  requests.push(asked);
}
