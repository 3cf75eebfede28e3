// Rows and texts that change once a second without being made anew, so that
// focus, selection and a screen reader's place stay where they are. Text is only
// ever set as textContent: ids, nicks and errors are foreign.

export const byId = (id) => document.getElementById(id);

// text sets a node's text if it differs.
export function text(node, value) {
  const s = String(value);
  if (node.textContent !== s) node.textContent = s;
  return node;
}

// el makes an element with attributes and children (nodes or strings).
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// foreign makes an element for text of others: isolated, so that right-to-left
// marks in a nick do not turn the rest of the row.
export const foreign = (value, name = '') => text(el('bdi', { class: name, dir: 'auto' }), value);

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

// tone gives a node one of the colours good, busy, warn, bad, calm.
export function tone(node, name) {
  if (node.dataset.tone !== name) node.dataset.tone = name;
  return node;
}

const nodesOf = new WeakMap(); // by parent: key to node

// list keeps one child of parent per item, in the order of items. make builds a
// child for a new key; update is called for every item.
export function list(parent, items, keyOf, make, update) {
  const before = nodesOf.get(parent) ?? new Map();
  const after = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    if (after.has(key)) continue; // one row per key, whatever the answer holds
    const node = before.get(key) ?? make(item);
    after.set(key, node);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
    update(node, item);
  }
  for (const [key, node] of before) if (!after.has(key)) node.remove();
  nodesOf.set(parent, after);
}

// table fills a tbody. A column has a label, and fill(cell, item), which is
// called for every row every second. The first column heads its row. Roles are
// spelled out because narrow screens show rows as blocks, which would otherwise
// take the meaning of a table from them.
export function table(body, columns, items, keyOf) {
  const make = () => {
    const row = el('tr', { role: 'row' });
    columns.forEach((column, i) => {
      const cell = i === 0 ? el('th', { scope: 'row', role: 'rowheader' }) : el('td', { role: 'cell' });
      cell.dataset.label = column.label;
      if (column.name) cell.className = column.name;
      row.append(cell);
    });
    return row;
  };
  const update = (row, item) => columns.forEach((column, i) => column.fill(row.children[i], item));
  list(body, items, keyOf, make, update);
}

// pill shows a word in a coloured capsule.
export function pill(cell, word, name) {
  const node = cell.querySelector(':scope > .pill') ?? cell.appendChild(el('span', { class: 'pill' }));
  tone(text(node, word), name);
}

// button keeps one button in a cell; onClick is given what the row shows now.
export function button(cell, label, spoken, onClick, name = 'quiet') {
  let node = cell.querySelector(':scope > button');
  if (!node) {
    node = cell.appendChild(el('button', { type: 'button', class: name }));
    node.addEventListener('click', () => node.act());
  }
  node.act = onClick;
  text(node, label);
  if (node.getAttribute('aria-label') !== spoken) node.setAttribute('aria-label', spoken);
  return node;
}
