// The loop: once a second, while the page is visible, fetch everything and hand it
// to the views. When no answer comes, the last figures stay, greyed, and the
// banner shows how old they are.

import { get, Problem } from './api.js';
import { byId, show, text } from './dom.js';
import { clock, span } from './format.js';
import * as boards from './boards.js';
import * as bypasses from './bypasses.js';
import * as classes from './classes.js';
import * as compare from './compare.js';
import * as dialog from './dialog.js';
import * as events from './events.js';
import * as files from './files.js';
import * as history from './history.js';
import * as hot from './hot.js';
import * as lamps from './lamps.js';
import * as member from './member.js';
import * as profiles from './profiles.js';
import * as replay from './replay.js';
import * as rooms from './rooms.js';
import * as runbook from './runbook.js';
import * as summary from './summary.js';
import * as top from './top.js';
import * as trouble from './trouble.js';

const every = 1000; // ms between an answer and the next question

let answered = 0; // when the last answers came
let timer;

// soft turns an error that the sidecar itself answered into a value: one part
// that fails does not take the others from the page.
const soft = (promise) => promise.catch((error) => {
  if (error instanceof Problem) return { problem: error };
  throw error;
});

async function load() {
  const head = get(boards.head);
  const table = boards.path() === boards.head ? head : soft(get(boards.path()));
  const [status, listed, hotkeys, roomsNow] = await Promise.all([head, table, soft(get('/hotkeys')), soft(get('/rooms'))]);
  const now = { status, listed, hot: hotkeys, rooms: roomsNow };
  for (const view of [summary, trouble, bypasses, lamps, replay, boards, hot, rooms, files, profiles, dialog]) view.draw(now);
  await Promise.all([top.load(now), soft(history.load()), soft(events.load()), soft(classes.load())]);
}

async function beat() {
  clearTimeout(timer);
  if (document.hidden) return; // visibilitychange begins anew
  try {
    await load();
    answered = Date.now();
    found();
  } catch (error) {
    lost(error);
  }
  clearTimeout(timer); // another beat may have begun meanwhile
  timer = setTimeout(beat, every);
}

function found() {
  document.body.classList.remove('stale');
  show(byId('lost'), false);
}

function lost(error) {
  console.debug('no answer', error);
  document.body.classList.add('stale');
  summary.lost();
  text(byId('lost-text'), answered
    ? `The figures below are from ${clock(answered)}, ${span(Date.now() - answered)} ago.`
    : 'Nothing has been answered yet.');
  show(byId('lost'), true);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden) beat(); });
byId('again').addEventListener('click', beat);
text(byId('where'), location.host);
boards.begin(beat);
dialog.start(beat);
profiles.start();
top.start(beat);
compare.start(top.shown);
member.start(top.shown);
runbook.start();
beat();
