// The admin token: in memory, and for as long as the tab lives in sessionStorage
// if the operator asks for that.

const key = 'rankcache.token';
let held = '';

try { held = sessionStorage.getItem(key) ?? ''; } catch { /* storage is forbidden: memory has to do */ }

export const token = () => held;

export function remember(value, keep) {
  held = value;
  try {
    if (keep) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch { /* as above */ }
}

export const forget = () => remember('', false);
