// What is wrong, in one place, with what to do about it.

import { button, byId, el, list, show, text } from './dom.js';
import { endsSoon } from './files.js';
import { many, since, span } from './format.js';
import { open } from './runbook.js';

export function draw({ status }) {
  const all = troubles(status);
  list(byId('troubles'), all, (t) => t.key, make, update);
  show(byId('trouble'), all.length > 0);
}

// troubles returns the faults that the status shows, each with the runbook's heading.
function troubles(status) {
  const all = [];
  const add = (key, words, runbook) => all.push({ key, words, runbook });
  if (status.state === 'starting') add('starting', `Not ready: ${status.reason || 'boards are being filled'}`, 'RankcacheNotReady');
  for (const [key, name] of Object.entries(serviceNames)) {
    const d = status.dependencies?.[key];
    if (d?.state === 'failing') add(`dependency ${key}`, `${name} has not answered for ${since(d.since)}`, serviceRunbooks[key]);
  }
  const lacking = status.damage?.unknown && !status.damage.masters; // a right, and not boards
  if (status.damage) add(lacking ? 'damage unknown' : 'damage', damage(status.damage), lacking ? 'RankcacheNotReady' : 'RankcacheBoardsWait');
  const by = status.boards_by_state ?? {};
  if (by.lost) add('lost', `Redis has lost ${many(by.lost, 'board')}: answered as they were. Write them anew with rankcache rebuild, those without a ledger with --from log`, 'RankcacheBoardsLost');
  if (status.boards_begun_again) add('begun-again', `Redis has lost ${many(status.boards_begun_again, 'board')} that others have begun again: what they had is not on them. rankcache rebuild --from log --earlier puts it back`, 'RankcacheBoardsLost');
  if (by['given-up']) add('given-up', `${many(by['given-up'], 'board')} given up: Redis answers`, 'RankcacheBoardGivenUp');
  if (by.stale) add('stale', `${many(by.stale, 'board')} answered from a file, as Redis was away at the start`, 'RankcacheBoardOld');
  if (status.local?.oldest_ms > 15000) add('old', `The oldest local board is as it was ${span(status.local.oldest_ms)} ago`, 'RankcacheBoardOld');
  const refused = status.memory?.refused_boards ?? 0;
  for (const f of status.files ?? []) {
    if (f.error) add(`file ${f.setting}`, `${f.setting}, read ${since(f.read_at)} ago: ${f.error}`, 'A file is not in force');
    if (endsSoon(f)) add(`ends ${f.setting}`, `A certificate in ${f.file} (${f.setting}) ends ${f.certificate_ends}`, 'RankcacheCertificateEnds');
  }
  if (refused) add('refused', `${many(refused, 'board')} refused for want of memory: Redis answers`, 'RankcacheMemoryRefused');
  return all;
}

// damage tells what is left of a Redis that may have lost boards.
function damage({ masters, since: from, wanted, left, unknown }) {
  if (unknown && !masters) return `It is not known whether Redis lacks boards: ${unknown}. rankcache doctor --for serve names the right that is missing`;
  const waiting = wanted ? `; commands of ${many(wanted, 'board')} wait for that` : '';
  const begun = `Redis was emptied, or went back, ${since(from)} ago`;
  if (left === null) return `${begun}, and may lack boards: the ledger has not begun to rebuild them${waiting}. Check that rankcache ledger runs with --rebuild-lost and is not behind`;
  if (!left) return `${begun}: all boards that the ledger has are there again, and the writers still read commands again. Check that they run`;
  return `${begun}: the ledger has ${many(left, 'board')} left to rebuild${waiting}. If the number stands still, check rebuild_lost in the ledger’s /status`;
}

// The first that fails may be why the later ones do: profiles and hot keys may come from Redis.
const serviceNames = { redis: 'Redis', kafka: 'Kafka', ledger: 'The ledger', profiles: 'The profile service', hot_keys: 'The hot-key source' };
const serviceRunbooks = { redis: 'RankcacheOriginErrors', kafka: 'Kafka does not answer', profiles: 'RankcacheProfilesDown', hot_keys: 'RankcacheHotVerdictStale', ledger: 'The ledger does not answer a sidecar' };

function make() { return el('li', { class: 'banner', 'data-tone': 'bad' }, el('span'), el('span')); }

function update(item, t) {
  text(item.firstChild, t.words);
  button(item.lastChild, 'What to do', `What to do: ${t.words}`, () => open(t.runbook));
}
