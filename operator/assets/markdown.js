// The Markdown of the runbooks as nodes: paragraphs, lists, tables, commands; bold, italic, code, links.

import { el, text } from './dom.js';

// blocks makes the nodes of a text. link(words, target) makes those of a link.
export function* blocks(markdown, link) {
  for (const [i, part] of markdown.split(/^```.*$/m).entries()) {
    if (i % 2) yield commands(part.replace(/^\n|\n$/g, ''));
    else for (const block of part.split(/\n{2,}/)) yield* words(block.trim(), link);
  }
}

// words makes a paragraph, and a list or a table that follows it without an empty line.
function* words(block, link) {
  const begin = block.search(/^[-|]/m);
  const before = (begin < 0 ? block : block.slice(0, begin)).trim();
  if (before) yield el(before.startsWith('## ') ? 'h3' : 'p', {}, ...inline(before.replace(/^#+ /, ''), link));
  if (begin < 0) return;
  const rest = block.slice(begin);
  yield rest.startsWith('|') ? table(rest, link) : el('ul', {}, ...rest.split(/^- /m).slice(1).map((item) => el('li', {}, ...inline(item, link))));
}

// table has its head in the first line and a ruler in the second.
function table(block, link) {
  const [head, , ...rows] = block.split('\n').map((line) => line.replace(/^\| *| *\|$/g, '').split(/ *\| */));
  const row = (cells, tag) => el('tr', {}, ...cells.map((cell) => el(tag, tag === 'th' ? { scope: 'col' } : {}, ...inline(cell, link))));
  return el('table', {}, el('thead', {}, row(head, 'th')), el('tbody', {}, ...rows.map((cells) => row(cells, 'td'))));
}

// commands keep their lines, and can be copied at once.
function commands(lines) {
  const code = el('code', {}, lines);
  const copy = el('button', { type: 'button', class: 'quiet' }, 'Copy');
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(lines);
      text(copy, 'Copied');
    } catch { // no clipboard for pages that are not of localhost
      getSelection().selectAllChildren(code);
      text(copy, 'Marked: press Ctrl+C');
    }
  });
  return el('div', { class: 'commands' }, el('pre', { tabindex: '0' }, code), copy);
}

const marks = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)]+)\)/g;

function* inline(line, link) {
  let at = 0;
  for (const m of line.matchAll(marks)) {
    const [all, code, strong, slanted, words, target] = m;
    if (m.index > at) yield line.slice(at, m.index);
    at = m.index + all.length;
    if (code) yield el('code', {}, code);
    else if (words) yield link([...inline(words, link)], target);
    else yield el(strong ? 'strong' : 'em', {}, ...inline(strong ?? slanted, link));
  }
  if (at < line.length) yield line.slice(at);
}
