// A recipe for apps in Node: it reads the page of a board from the sidecar, and from
// Redis while the sidecar is away. Each line of its input is a read; a line with a state,
// such as the writer answers, reads a page that has that write. With a member the page has
// its row, neighbours and profiles, and a line such as +5 gives it points first.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import readline from 'node:readline';
import { buffer } from 'node:stream/consumers';

const limit = 50; // rows of a page

class Away extends Error {}

const address = (text) => {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) };
};

// Client has the connections: make one for the whole process. sidecar is a socket's path
// or a host:port, redis reads a board's page from Redis. me is the member that pages are for,
// writer the host:port of the writer, token its token.
class Client {
  constructor(sidecar, redis, { me, writer, token } = {}) {
    Object.assign(this, { redis, me, token, writer: writer && address(writer) });
    this.sidecar = sidecar.startsWith('/') ? { socketPath: sidecar } : address(sidecar);
    // The sidecar closes connections that were idle for 90 s.
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 16, timeout: 60_000 });
  }

  // top resolves to the page of the board: {source, entries, me, state, etag}. If that has not
  // changed since known, an earlier page, it is known itself. With a state it has that write.
  async top(board, known, state) {
    for (const agent of [this.agent, false]) { // false: a new connection, those kept may be dead
      try {
        return await this.ask(agent, board, known, state);
      } catch (err) {
        if (!(err instanceof Away)) throw err;
      }
    }
    return { source: 'direct', entries: await this.redis(board), state: '' };
  }

  async ask(agent, board, known, state) {
    let path = `/v1/boards/${encodeURIComponent(board)}/top?limit=${limit}`;
    if (this.me) path += `&around=4&profiles=1&me=${encodeURIComponent(this.me)}`;
    if (state) path += `&wait_ms=200&min_state=${encodeURIComponent(state)}`;
    const headers = known?.etag ? { 'If-None-Match': known.etag } : {};
    const { answer, body } = await this.send({ ...this.sidecar, agent, path, headers }, 1000);
    switch (answer.statusCode) {
      case 200: {
        const { source, entries, me } = JSON.parse(body);
        return { source, entries, me, state: answer.headers['rankcache-state'] ?? '', etag: answer.headers.etag };
      }
      case 304: return known;
      case 503: throw new Away(body);
      default: throw new Error(`read ${board}: ${answer.statusCode}: ${body}`); // 403 blocked, 412 write_lost: not for Redis
    }
  }

  // post adds to the score of me, and resolves to the board's state after it, for the next read.
  async post(board, delta) {
    const command = { order: randomUUID(), board, member: this.me, op: 'incr', delta, at: Date.now() };
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${this.token}` };
    for (let last = false; ; last = true) { // the same order and at: it counts once
      try {
        const options = { ...this.writer, method: 'POST', path: '/v1/scores', headers };
        const { answer, body } = await this.send(options, 6000, JSON.stringify(command)); // a writer waits up to 5 s for Redis
        if (answer.statusCode === 200) return JSON.parse(body).state;
        if (answer.statusCode !== 503 || last) throw new Error(`post: ${answer.statusCode}: ${body}`); // refused: so is a repeat
      } catch (err) {
        if (!(err instanceof Away) || last) throw err; // it may have been counted: post the same again later
      }
    }
  }

  send(options, within, content) {
    return new Promise((resolve, reject) => {
      const away = (err) => reject(new Away(err.message));
      http.request({ ...options, signal: AbortSignal.timeout(within) }, (answer) => {
        buffer(answer).then((body) => resolve({ answer, body: body.toString() }), away);
      }).on('error', away).end(content);
    });
  }
}

// zrevrange reads from Redis itself. In your app its Redis client does this, with a small pool.
// With integers the fraction of a score is a tie-break, which the sidecar doesn't show.
async function zrevrange(redis, board, integers) {
  const words = ['ZREVRANGE', board, '0', String(limit - 1), 'WITHSCORES'];
  const command = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('');
  const conn = net.connect(address(redis));
  conn.setTimeout(1000, () => conn.destroy(new Error('Redis does not answer')));
  conn.write(`*${words.length}\r\n${command}QUIT\r\n`); // QUIT: the reply ends with the connection
  const reply = await buffer(conn);
  if (reply[0] !== '*'.charCodeAt(0)) throw new Error(`Redis answers ${reply}`);
  const values = [];
  for (let at = reply.indexOf('$'); reply[at] === '$'.charCodeAt(0);) {
    const begin = reply.indexOf('\r\n', at) + 2;
    const end = begin + Number(reply.toString('utf8', at + 1, begin));
    values.push(reply.toString('utf8', begin, end));
    at = end + 2;
  }
  const score = integers ? Math.floor : Number;
  return values.flatMap((value, i) => (i % 2 ? [{ member: values[i - 1], score: score(value) }] : []));
}

const [sidecar, redis, board, scores, me, writer] = process.argv.slice(2);
if (!board) {
  console.error('usage: leaderboard.mjs SIDECAR REDIS BOARD [integer|number [MEMBER [WRITER]]]');
  process.exit(2);
}
const token = process.env.RANKCACHE_WRITE_TOKEN ?? '';
const client = new Client(sidecar, (b) => zrevrange(redis, b, scores === 'integer'), { me, writer, token });
let page;
for await (const line of readline.createInterface({ input: process.stdin })) {
  try {
    const known = page;
    const state = line.startsWith('+') ? await client.post(board, Number(line)) : line.trim();
    page = await client.top(board, known, state);
    let rows = page.entries.map(({ member, score }) => ` ${member}=${score}`).join('');
    if (page.me?.rank) rows += ` | rank ${page.me.rank}, ${page.me.neighbours.length} near, ${page.me.profile?.nick}`;
    console.log(`${page === known ? 'unchanged' : page.source} ${page.state}:${rows}`);
  } catch (err) {
    console.log('error:', err.message);
  }
}
