// The classes in force.

import { get } from './api.js';
import { byId, show, table, text } from './dom.js';

let asked = 0;

const columns = [
  { label: 'Class', name: 'id', fill: (cell, c) => text(cell, c.name) },
  { label: 'Mode', fill: (cell, c) => text(cell, c.mode || 'small') },
  { label: 'Boards', name: 'id', fill: (cell, c) => text(cell, c.board) },
  { label: 'Period', fill: (cell, c) => text(cell, c.tz ? `${c.period} (${c.tz})` : c.period) },
  { label: 'Set by', fill: (cell, c) => text(cell, c.source === 'file' ? 'the rooms file' : 'at run time') },
];

export async function load() {
  if (Date.now() - asked < 5000) return;
  asked = Date.now();
  const { classes } = await get('/classes');
  table(byId('classes-rows'), columns, classes, (c) => c.name);
  show(byId('classes'), classes.length > 0);
}
