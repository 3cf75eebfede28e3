// A recipe for apps in Node: it keeps the page of a board by the sidecar's stream of
// server-sent events, and prints it as it moves.
import { setTimeout as sleep } from 'node:timers/promises';

const silence = 15_000; // ms; the sidecar sends an event every 5 s
const leastWait = 100;
const mostWait = 1_000;

// Follower keeps a page: run calls changed(kind, page, data) for each event. The kind is page,
// diff, age, end, or away: there is no stream now. The page is as GET .../top answers, and never
// changed; undefined before the first, and when the board is blocked or deleted.
class Follower {
  constructor(sidecar, board, changed) {
    this.url = `http://${sidecar}/v1/boards/${encodeURIComponent(board)}/live?limit=50`;
    this.changed = changed;
    this.last = undefined; // the stream's page, to which the next diff applies
    this.shown = undefined; // the same, or a newer one of another sidecar
    this.wait = leastWait;
  }

  async run() {
    for (;;) {
      const control = new AbortController();
      const silent = setTimeout(() => control.abort(new Error('no event for 15 s')), silence);
      try {
        await this.stream(control.signal, silent);
        this.changed('away', this.shown, 'the stream has ended');
      } catch (err) {
        this.changed('away', this.shown, err.cause?.message ?? err.message);
      } finally {
        clearTimeout(silent);
        control.abort();
      }
      await sleep(this.wait * (1 + Math.random())); // all apps of a sidecar lose it at the same time
      this.wait = Math.min(2 * this.wait, mostWait);
    }
  }

  async stream(signal, silent) {
    const headers = this.last ? { 'Last-Event-ID': this.last.id } : {};
    const answer = await fetch(this.url, { headers, signal });
    if (!answer.ok) {
      if (answer.status < 500) this.last = this.shown = undefined; // blocked or unknown
      throw new Error(`${answer.status}: ${await answer.text()}`);
    }
    let rest = '';
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + chunk).split('\n\n');
      rest = events.pop();
      for (const text of events) {
        silent.refresh();
        const fields = Object.fromEntries(text.split('\n').map((line) => line.split(/: (.*)/s)));
        this.wait = Math.max(leastWait, Number(fields.retry ?? 0));
        this.take(fields.event, JSON.parse(fields.data));
      }
    }
  }

  take(kind, data) {
    switch (kind) {
      case 'page':
        this.last = data;
        break;
      case 'diff':
        if (this.last?.id !== data.base) {
          this.last = undefined; // the next request has no Last-Event-ID, and gets a page
          throw new Error('a diff of another page');
        }
        this.last = apply(this.last, data);
        break;
      case 'end':
        if (data.code !== 'draining') this.last = this.shown = undefined; // blocked or deleted
    }
    if (!older(this.last, this.shown)) this.shown = this.last;
    else if (kind === 'page' || kind === 'diff') return; // another sidecar may be behind: its page is shown when it is as new
    this.changed(kind, this.shown, data);
  }
}

function apply(page, { base, len, rows, ...rest }) {
  const entries = page.entries.slice(0, len);
  for (const { at, ...row } of rows) entries[at] = row;
  return { ...page, ...rest, entries };
}

function older(page, shown) {
  return page !== undefined && page.run === shown?.run && page.seq < shown.seq;
}

const [sidecar, board] = process.argv.slice(2);
if (!board) {
  console.error('usage: live.mjs SIDECAR BOARD');
  process.exit(2);
}
await new Follower(sidecar, board, (kind, page, data) => {
  if (kind === 'page' || kind === 'diff') {
    console.log(`${kind} ${page.seq ?? 0}:${page.entries.map(({ member, score }) => ` ${member}=${score}`).join('')}`);
  } else if (kind !== 'age') {
    console.log(`${kind}: ${typeof data === 'string' ? data : JSON.stringify(data)}`);
  }
}).run();
