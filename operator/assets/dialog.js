// The dialog of a change: choose what, confirm it with the token, hear what came
// of it. Nothing is sent before the second step.

import { change as send, Problem } from './api.js';
import { bypass, setting, unset } from './changes.js';
import { byId, show, text, tone } from './dom.js';
import { forget, remember, token } from './token.js';

const dialog = byId('change');
let pending; // the change that is to be confirmed
let afterwards = () => {};
let refused = false; // the sidecar has no token: nothing can be changed
let toastTimer;

export function draw({ status }) {
  refused = status.changes?.token_set === false;
  show(byId('locked'), refused);
  byId('continue').disabled = refused;
}

// start wires the dialog; refresh is called after a change.
export function start(refresh) {
  afterwards = refresh;
  byId('new-change').addEventListener('click', () => open({ kind: 'match', name: '' }));
  byId('choose').addEventListener('submit', (event) => { event.preventDefault(); chosen(); });
  byId('confirm').addEventListener('submit', (event) => { event.preventDefault(); go(); });
  byId('back').addEventListener('click', () => step(pending.from ? 'choose' : 'close'));
  byId('forget').addEventListener('click', () => { forget(); tokenField(); byId('token').focus(); });
  for (const button of dialog.querySelectorAll('[data-close]')) button.addEventListener('click', () => step('close'));
  for (const name of ['kind', 'mode']) for (const radio of byId('choose').elements[name]) radio.addEventListener('change', kindChanged);
}

// open begins with the first step, for a room (uid) or a board (match).
export function open({ kind, name }) {
  const form = byId('choose');
  form.reset();
  form.elements.kind.value = kind;
  form.elements.name.value = name;
  kindChanged();
  step('choose');
  (name ? form.elements.mode[0] : form.elements.name).focus();
}

// confirm begins with the second step.
export function confirm(what) {
  pending = what;
  text(byId('confirm-title'), what.title);
  text(byId('confirm-what'), what.what);
  text(byId('go'), what.verb);
  byId('go').classList.toggle('danger', Boolean(what.danger));
  text(byId('back'), what.from ? 'Back' : 'Cancel');
  problem('');
  tokenField();
  step('confirm');
  (byId('token-row').hidden ? byId('go') : byId('token')).focus();
}

function kindChanged() {
  const { kind, mode } = byId('choose').elements;
  const [room, all] = [kind.value === 'uid', kind.value === 'all'];
  for (const radio of mode) radio.disabled = radio.value === 'bypass' ? room : all; // rooms are not bypassed
  if ([...mode].some((radio) => radio.checked && radio.disabled)) mode.value = all ? 'bypass' : 'super-hot';
  show(byId('boards-row'), room);
  show(byId('name-row'), !all);
  show(byId('bypass-row'), mode.value === 'bypass');
  text(byId('name-label'), room ? 'Host’s uid' : mode.value === 'bypass' ? 'Board id' : 'Board id or pattern');
}

function chosen() {
  const { kind, name, mode, boards, minutes, by } = byId('choose').elements;
  const named = name.value.trim();
  if (!named && kind.value !== 'all') { name.focus(); return; }
  confirm({ ...change(), from: 'choose' });

  function change() {
    switch (mode.value) {
      case 'bypass': return bypass(kind.value, named, Number(minutes.value), by.value.trim() || 'the operator’s page');
      case 'unset': return unset(kind.value, named);
      default: return setting(kind.value, named, mode.value, boards.value.split(/[\s,]+/).filter(Boolean));
    }
  }
}

// step shows one of the two panels, or closes the dialog.
function step(name) {
  show(byId('choose'), name === 'choose');
  show(byId('confirm'), name === 'confirm');
  if (name === 'close') dialog.close();
  else if (!dialog.open) dialog.showModal();
}

function tokenField() {
  show(byId('token-row'), token() === '' && !refused);
  show(byId('token-held'), token() !== '' && !refused);
  show(byId('token-none'), refused);
  byId('token').required = token() === '' && !refused;
  byId('go').disabled = refused;
}

async function go() {
  const typed = byId('token').value;
  const used = token() || typed;
  byId('go').disabled = true;
  problem('');
  try {
    await send(pending.method, pending.path, pending.body, used);
    if (typed) remember(typed, byId('keep').checked);
    byId('token').value = '';
    step('close');
    toast(pending.done);
    afterwards();
  } catch (error) {
    failed(error);
  } finally {
    byId('go').disabled = refused;
  }
}

function failed(error) {
  if (!(error instanceof Problem)) {
    problem('No answer came. The change may or may not have been made: look at the table before you repeat it.');
    return;
  }
  if (error.status === 401) {
    forget();
    tokenField();
    byId('token').select();
    problem('The sidecar does not take this token. It is the one of its --admin-token.');
    return;
  }
  problem(`${error.title}: ${error.message}`);
}

function problem(words) {
  text(byId('change-problem'), words);
  show(byId('change-problem'), words !== '');
}

// toast shows for a while what has been done; it is a live region.
function toast(words) {
  const node = byId('toast');
  tone(text(node, words), 'good');
  node.classList.add('shown');
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { node.classList.remove('shown'); text(node, ''); }, 6000);
}
