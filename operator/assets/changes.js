// The changes that there are: the texts of their dialogs, and the
// request that makes it.

const effects = {
  'super-hot': (n) => `Every sidecar that shares this Redis rebuilds ${n} in its memory and answers from there once that equals Redis. It takes memory and a replay of the log.`,
  hot: (n) => `Every sidecar that shares this Redis keeps the top page of ${n} in memory and refreshes it, busy or not.`,
  blocked: (n) => `Every sidecar that shares this Redis refuses reads of ${n} with 403.`,
};
const verbs = { 'super-hot': 'Promote', hot: 'Pin', blocked: 'Block' };

// setting gives a room (uid) or board (match) a mode. boards are those of the
// room; without any, they are read from Redis.
export function setting(kind, name, mode, boards) {
  const body = { [kind]: name, mode };
  if (kind === 'uid' && boards.length > 0) body.boards = boards;
  const target = kind === 'uid' ? `room ${name}` : name;
  return {
    title: `${verbs[mode]} ${target}?`,
    what: effects[mode](kind === 'uid' ? `the boards of room ${name}` : name),
    verb: `${verbs[mode]} ${target}`,
    danger: mode === 'blocked',
    done: `${target} is set to ${mode}. All sidecars follow within 2 seconds.`,
    method: 'POST',
    path: '/rooms',
    body,
  };
}

// unset takes back what was set at run time.
export function unset(kind, name) {
  const target = kind === 'uid' ? `room ${name}` : name;
  return {
    title: `Unset ${target}?`,
    what: `What was set at run time for ${target} is taken back on every sidecar that shares this Redis. What the rooms file sets stays.`,
    verb: `Unset ${target}`,
    done: `${target} is no longer set at run time. All sidecars follow within 2 seconds.`,
    method: 'DELETE',
    path: `/rooms?${new URLSearchParams({ [kind]: name })}`,
  };
}

// bypass has Redis answer a board for some minutes, or with the kind all every board.
export function bypass(kind, name, minutes, by) {
  const whom = kind === 'all' ? 'all boards' : name;
  return {
    title: `Bypass ${whom}?`,
    what: `Every sidecar that shares this Redis stops answering ${whom} from memory, for ${minutes} min: Redis gets ${kind === 'all' ? 'all reads' : 'these reads'}, a few at a time. Copies are kept up to date meanwhile. It ends by itself.`,
    verb: `Bypass ${whom}`,
    danger: kind === 'all',
    done: `Redis answers ${whom}. All sidecars follow within 2 seconds.`,
    method: 'POST',
    path: '/rooms/bypass',
    body: { ...(kind === 'all' ? { all: true } : { board: name }), for_s: minutes * 60, by },
  };
}

// endBypass ends a bypass early; that of all boards with those of single boards.
export function endBypass({ board, all }) {
  const whom = all ? 'all boards' : board;
  return {
    title: `End the bypass of ${whom}?`,
    what: all ? 'Every bypass is ended: sidecars answer from memory again.' : `Sidecars answer ${whom} from memory again, unless all boards are bypassed.`,
    verb: 'End the bypass',
    done: `The bypass of ${whom} is ended. All sidecars follow within 2 seconds.`,
    method: 'DELETE',
    path: `/rooms/bypass?${new URLSearchParams(all ? { all: 'true' } : { board })}`,
  };
}

// drop forgets one profile.
export function drop(member) {
  return {
    title: 'Drop a profile?',
    what: `This sidecar forgets the nick and avatar of member ${member} and asks for them anew. Other sidecars keep theirs until they expire.`,
    verb: 'Drop the profile',
    done: `The profile of ${member} is dropped.`,
    method: 'DELETE',
    path: `/profiles/${encodeURIComponent(member)}`,
  };
}
