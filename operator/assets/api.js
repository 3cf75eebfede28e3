// Requests to the listener that the page came from.

const patience = 4000; // ms until an answer is given up

// Problem is a request that was answered with an error.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The sidecar answered ${status}.`);
    this.name = 'Problem';
    this.status = status;
    this.code = body.code ?? '';
    this.title = body.title ?? `Error ${status}`;
  }
}

async function problemOf(response) {
  const words = await response.text();
  try {
    const body = JSON.parse(words);
    if (body && typeof body === 'object') return new Problem(response.status, body);
  } catch { /* no JSON: the text is the detail */ }
  return new Problem(response.status, { detail: words.trim().slice(0, 300) });
}

async function ask(path, options = {}) {
  const response = await fetch(path, {
    cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(patience), ...options,
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

// get returns the JSON of a path.
export async function get(path) { return (await ask(path)).json(); }

// getText returns the text of a path.
export async function getText(path) { return (await ask(path)).text(); }

// getAged also returns the answer's age, in milliseconds.
export async function getAged(path) {
  const response = await ask(path);
  return { ...(await response.json()), age_ms: Number(response.headers.get('Rankcache-Age-Ms') ?? NaN) };
}

// change sends a change with the token. The token goes into a header only, never
// into an address, which would be kept in histories and logs.
export async function change(method, path, body, token) {
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  await ask(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}
