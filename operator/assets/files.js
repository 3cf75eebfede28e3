// The files that are read again when they change.

import { byId, foreign, pill, show, table, text } from './dom.js';
import { none, since } from './format.js';

const soon = 14 * 864e5; // ms: as the alert has it

export const endsSoon = (f, now = Date.now()) => Boolean(f.certificate_ends) && Date.parse(f.certificate_ends) - now < soon;

const columns = [
  { label: 'Setting', name: 'id', fill: (cell, f) => text(cell, f.setting) },
  { label: 'File', name: 'id', fill: (cell, f) => text(cell.firstChild ?? cell.appendChild(foreign('')), f.file) },
  { label: 'Read', fill: (cell, f) => text(cell, f.read_at ? `${since(f.read_at)} ago` : none) },
  { label: 'Certificate ends', fill: (cell, f) => text(cell, f.certificate_ends ? f.certificate_ends.slice(0, 10) : none) },
  { label: 'State', fill: (cell, f) => pill(cell, f.error ? 'not in force' : endsSoon(f) ? 'ends soon' : 'in force', f.error ? 'bad' : endsSoon(f) ? 'warn' : 'good') },
];

export function draw({ status }) {
  const files = status.files ?? [];
  show(byId('files'), files.length > 0);
  table(byId('files-rows'), columns, files, (f) => f.setting);
}
