// Numbers, sizes and times as people read them. Every function takes what JSON
// may hold and answers "–" for what is not a number.

export const none = '–';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const precise = new Intl.NumberFormat('en', { maximumFractionDigits: 6 });

const isNumber = (n) => typeof n === 'number' && Number.isFinite(n);

export const count = (n) => (isNumber(n) ? whole.format(n) : none);

export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

export const score = (n) => (isNumber(n) ? precise.format(n) : none);

export function rate(n) {
  if (!isNumber(n)) return none;
  return `${(n > 0 && n < 10 ? tenths : whole).format(n)}/s`;
}

export function bytes(n) {
  if (!isNumber(n)) return none;
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${(n < 100 && unit > 0 ? tenths : whole).format(n)} ${units[unit]}`;
}

export function percent(part, all) {
  return isNumber(part) && all > 0 ? `${tenths.format((100 * part) / all)} %` : none;
}

// span formats a length of time given in milliseconds, in at most two units.
export function span(ms) {
  if (!isNumber(ms) || ms < 0) return none;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${tenths.format(ms / 1000)} s`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${whole.format(Math.floor(s / 86400))} d ${Math.floor((s % 86400) / 3600)} h`;
}

// since formats how long ago a time of the server was; its clock may be a little
// ahead of ours. A time that was never set is the year 1 in Go's JSON.
export function since(time, now = Date.now()) {
  const at = Date.parse(time);
  return Number.isNaN(at) || at <= 0 ? none : span(Math.max(now - at, 0));
}

// visible writes characters that are not seen, or that turn what is around them, as their codes; so all of a blank text.
export function visible(s) {
  const unseen = s.trim() === '' ? /[^]/gu : /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0]/gu;
  return s.replace(unseen, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

export const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');
