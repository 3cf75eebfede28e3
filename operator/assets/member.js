// One member of the board that is shown: what is here and what Redis has.

import { get, Problem } from './api.js';
import { byId, show, text } from './dom.js';
import { count, score, visible } from './format.js';

// start looks a member of the board up whose id the function returns.
export function start(board) {
  byId('member-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const member = byId('member-id').value;
    if (member !== '') look(board(), member);
  });
}

// reset forgets the result: another board is shown.
export const reset = () => show(byId('member-some'), false);

async function look(board, member) {
  try {
    const answer = await get(`/boards/${encodeURIComponent(board)}/members/${encodeURIComponent(member)}`);
    draw(visible(member) + (answer.board && answer.board !== board ? `, on shard ${visible(answer.board)}` : ''), answer.here ? words(answer.here) : 'no copy here can tell', words(answer.redis));
  } catch (error) {
    draw(visible(member), error instanceof Problem ? error.message : 'the sidecar does not answer', '');
  }
}

function draw(member, here, redis) {
  text(byId('member-name'), member);
  text(byId('member-here'), here);
  text(byId('member-redis'), redis);
  show(byId('member-some'), true);
}

function words(side) {
  if (side.error) return side.error;
  if (side.rank === null) return `not on the board, at ${side.state}`;
  return `rank ${count(side.rank)}, score ${score(side.score)}, at ${side.state}`;
}
