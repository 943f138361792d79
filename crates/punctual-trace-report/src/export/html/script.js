'use strict';

// The scrubber over the jobs of a task: slider, buttons, and arrow keys.
const scrubbers = new Map();
for (const figure of document.querySelectorAll('.worst')) {
  const jobs = [...figure.querySelectorAll('.job')];
  const bar = figure.querySelector('.scrub');
  if (!bar) continue;
  const [worse, better] = bar.querySelectorAll('button');
  const slider = bar.querySelector('input');
  const said = bar.querySelector('output');
  const show = (wanted) => {
    const chosen = Math.min(Math.max(wanted, 0), jobs.length - 1);
    jobs.forEach((job, index) => { job.hidden = index !== chosen; });
    slider.value = chosen + 1;
    said.textContent = jobs[chosen].querySelector('.which b').textContent;
    worse.disabled = chosen === 0;
    better.disabled = chosen === jobs.length - 1;
  };
  const move = (by) => show(Number(slider.value) - 1 + by);
  slider.addEventListener('input', () => show(Number(slider.value) - 1));
  worse.addEventListener('click', () => move(-1));
  better.addEventListener('click', () => move(1));
  figure.tabIndex = 0;
  figure.addEventListener('keydown', (event) => {
    if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === 'ArrowLeft') move(-1);
    else if (event.key === 'ArrowRight') move(1);
    else return;
    event.preventDefault();
  });
  bar.hidden = false;
  show(0);
  jobs.forEach((job, index) => scrubbers.set(job.id, () => show(index)));
}

// A link to one job, such as #t0-j3, shows it.
const follow = () => {
  const id = location.hash.slice(1);
  const reveal = scrubbers.get(id);
  if (!reveal) return;
  reveal();
  document.getElementById(id).closest('.worst').scrollIntoView();
};
addEventListener('hashchange', follow);
follow();
const go = (link) => {
  location.hash = link.getAttribute('href');
  follow();
};

// Whatever says what it is says it below itself, when it is pointed at or reached by arrow keys.
const tip = document.createElement('div');
tip.className = 'tip';
tip.setAttribute('role', 'status');
document.body.append(tip);
let pointed = null;
const point = (item, text) => {
  pointed?.classList.remove('pointed');
  pointed = item;
  tip.textContent = item ? text : '';
  if (!item) return;
  item.classList.add('pointed');
  const of = item.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max((of.left + of.right - width) / 2, 4), Math.max(innerWidth - width - 4, 4));
  const below = of.bottom + 8 + height < innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? of.bottom + 8 : of.top - height - 8}px`;
};
addEventListener('scroll', () => point(null), { passive: true });

const heading = (link) => document.querySelector(`${link.getAttribute('href')} .which`)?.textContent ?? '';
for (const svg of document.querySelectorAll('svg')) {
  const texts = new Map();
  // The browser would show titles of its own beside ours.
  const items = () => {
    for (const title of svg.querySelectorAll('title')) {
      texts.set(title.parentElement, title.textContent);
      title.remove();
    }
    svg.querySelectorAll('a').forEach((link) => texts.set(link, heading(link)));
    return [...texts.keys()].filter((item) => item.style.display !== 'none' && !item.closest('[style*="none"]'));
  };
  svg.addEventListener('pointerover', (event) => {
    items();
    let item = event.target;
    while (item && !texts.has(item)) item = item === svg ? null : item.parentElement;
    point(item, texts.get(item));
  });
  svg.addEventListener('pointerleave', () => point(null));
  svg.addEventListener('blur', () => point(null));
  svg.tabIndex = 0;
  svg.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const all = items();
    if (event.key === 'Escape') point(null);
    else if (event.key === 'Enter' && pointed?.matches('a')) go(pointed);
    else if (event.key.startsWith('Arrow') && all.length) {
      const next = neighbor(all, all.includes(pointed) ? pointed : null, event.key);
      point(next, texts.get(next));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

// What is next to an item: before or behind it in its row, or the nearest in the row above or below.
const neighbor = (items, from, key) => {
  const box = (item) => {
    const { left, right, top, bottom } = item.getBoundingClientRect();
    return { item, x: (left + right) / 2, y: (top + bottom) / 2 };
  };
  const boxes = items.map(box).sort((a, b) => a.x - b.x);
  if (!from) return items[0];
  const here = boxes.find(({ item }) => item === from);
  const across = key === 'ArrowLeft' || key === 'ArrowRight';
  const forward = key === 'ArrowRight' || key === 'ArrowDown';
  const alone = !from.closest('.timeline');
  if (across) {
    const row = boxes.filter(({ y }) => alone || Math.abs(y - here.y) < 1);
    return row[row.indexOf(here) + (forward ? 1 : -1)]?.item ?? from;
  }
  const beyond = boxes.filter(({ y }) => (forward ? y - here.y : here.y - y) >= 1);
  const gap = Math.min(...beyond.map(({ y }) => Math.abs(y - here.y)));
  const row = beyond.filter(({ y }) => Math.abs(y - here.y) < gap + 1);
  const far = ({ x }) => Math.abs(x - here.x);
  return row.sort((a, b) => far(a) - far(b))[0]?.item ?? from;
};

// A click on a chart shows the nearest job that is kept.
for (const svg of document.querySelectorAll('svg.series')) {
  svg.addEventListener('click', (event) => {
    const far = (link) => {
      const { left, right, top, bottom } = link.getBoundingClientRect();
      return Math.hypot((left + right) / 2 - event.clientX, (top + bottom) / 2 - event.clientY);
    };
    const [nearest] = [...svg.querySelectorAll('a')].sort((a, b) => far(a) - far(b));
    if (!nearest) return;
    event.preventDefault();
    go(nearest);
  });
}

// "12.3 µs"
const duration = (ns) => {
  const [unit, size] = [['s', 1e9], ['ms', 1e6], ['µs', 1e3]].find(([, size]) => ns >= size) ?? ['ns', 1];
  const value = ns / size;
  return `${size === 1 ? Math.round(value) : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
};

// Zooms and pans a timeline: with the wheel and Ctrl, a double click, by dragging, with buttons or with keys.
const LETTERS = { CS: 'C|SS ', Z: 'C asleep ', ran: '', ready: '' };
const zoomable = (svg) => {
  const [left, right, span] = svg.dataset.plot.split(' ').map(Number);
  const [, , wide, high] = svg.getAttribute('viewBox').split(' ').map(Number);
  let view = [0, span];
  const parts = [...svg.querySelectorAll('[data-t]')].map((element) => {
    const [start, end = start] = element.dataset.t.split(' ').map(Number);
    const d = element.getAttribute('d');
    const [, y, height] = d?.match(/^M\S+ (\S+)h\S+v([^h]+)h/)?.map(Number) ?? [];
    return { element, start, end, d, y, height };
  });
  const layer = document.createElementNS(svg.namespaceURI, 'g');
  svg.append(layer);
  const text = (kind, x, y, content, anchor = 'middle') => {
    const element = document.createElementNS(svg.namespaceURI, 'text');
    element.setAttribute('class', `zoom ${kind}`);
    element.setAttribute('x', x);
    element.setAttribute('y', y);
    element.setAttribute('text-anchor', anchor);
    element.textContent = content;
    layer.append(element);
    return element;
  };
  const scale = (t, [from, to] = view) => left + ((t - from) / (to - from)) * (right - left);
  const axis = () => {
    const [from, to] = view;
    const rough = ((to - from) * 90) / (right - left);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max([1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough), 1);
    const [unit, size] = [['s', 1e9], ['ms', 1e6], ['µs', 1e3]].find(([, size]) => to >= size) ?? ['ns', 1];
    const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const anchor = scale(t) > right - 16 ? 'end' : 'middle';
      text('tick', scale(t), high - 9, (t / size).toFixed(digits), anchor);
    }
    text('tick', left - 24, high - 9, unit, 'end');
  };
  const draw = () => {
    const [from, to] = view;
    const zoomed = to - from < span;
    svg.classList.toggle('zoomed', zoomed);
    layer.replaceChildren();
    for (const { element, start, end, d, y, height } of parts) {
      const outside = end < from || start > to;
      element.style.display = outside ? 'none' : '';
      if (outside) continue;
      if (!d) {
        element.setAttribute('transform', `translate(${scale(start) - scale(start, [0, span])} 0)`);
        continue;
      }
      const x = Math.max(scale(start), left);
      const width = Math.max(Math.min(scale(end), right) - x, 1.2);
      element.setAttribute('d', zoomed ? `M${x} ${y}h${width}v${height}h${-width}z` : d);
      const kind = element.classList[element.classList.length - 1];
      if (!zoomed || height < 12) continue;
      const label = text(`on-${kind}`, x + width / 2, y + height / 2 + 4, `${LETTERS[kind] ?? `${kind} `}${duration(end - start)}`);
      if (label.getComputedTextLength() + 6 > width) label.remove();
    }
    if (zoomed) axis();
  };
  const set = (from, length) => {
    length = Math.min(Math.max(length, Math.min(span, 200)), span);
    from = Math.min(Math.max(from, 0), span - length);
    view = [from, from + length];
    const [chosen, said] = [svg.contains(pointed) ? pointed : null, tip.textContent];
    draw();
    point(chosen?.closest('[style*="none"]') ? null : chosen, said);
  };
  // By that factor, so that what is at `part` of the width stays there.
  const zoom = (by, part = 0.5) => {
    const length = view[1] - view[0];
    const next = Math.min(Math.max(length / by, Math.min(span, 200)), span);
    set(view[0] + (length - next) * part, next);
  };
  const pan = (part) => set(view[0] + (view[1] - view[0]) * part, view[1] - view[0]);
  const part = (event) => {
    const box = svg.getBoundingClientRect();
    return (((event.clientX - box.left) / box.width) * wide - left) / (right - left);
  };
  const within = (event) => Math.min(Math.max(part(event), 0), 1);
  svg.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(2 ** (-event.deltaY / 200), within(event));
  }, { passive: false });
  svg.addEventListener('dblclick', (event) => zoom(event.shiftKey ? 0.5 : 2, within(event)));
  let grabbed = null;
  svg.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || view[1] - view[0] >= span) return;
    grabbed = part(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener('pointermove', (event) => {
    if (grabbed === null) return;
    pan(grabbed - part(event));
    grabbed = part(event);
  });
  const release = () => { grabbed = null; };
  svg.addEventListener('pointerup', release);
  svg.addEventListener('pointercancel', release);
  svg.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === '+' || event.key === '=') {
      // What has been chosen by keys comes into the middle.
      const chosen = parts.find(({ element }) => element === pointed);
      if (chosen) set((chosen.start + chosen.end) / 2 - (view[1] - view[0]) / 2, view[1] - view[0]);
      zoom(2);
    } else if (event.key === '-') zoom(0.5);
    else if (event.key === '0') zoom(0);
    else if (event.shiftKey && event.key === 'ArrowLeft') pan(-0.25);
    else if (event.shiftKey && event.key === 'ArrowRight') pan(0.25);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { zoom, pan };
};

for (const figure of document.querySelectorAll('.worst')) {
  for (const place of [...figure.querySelectorAll('.job'), figure]) {
    const drawings = [...place.querySelectorAll(':scope > svg.timeline')];
    if (!drawings.length) continue;
    let timelines = null;
    const each = (what) => {
      timelines ??= drawings.map(zoomable);
      timelines.forEach(what);
    };
    // Most jobs are never looked at.
    for (const drawing of drawings) {
      drawing.addEventListener('pointerenter', () => each(() => {}), { once: true });
      drawing.addEventListener('focus', () => each(() => {}), { once: true });
    }
    const bar = document.createElement('div');
    bar.className = 'zoom-bar';
    for (const [label, sign, what] of [
      ['earlier', '‹', ({ pan }) => pan(-0.25)],
      ['zoom out', '−', ({ zoom }) => zoom(0.5)],
      ['zoom in', '+', ({ zoom }) => zoom(2)],
      ['later', '›', ({ pan }) => pan(0.25)],
      ['the whole job', 'whole', ({ zoom }) => zoom(0)],
    ]) {
      const button = document.createElement('button');
      button.type = 'button';
      button.setAttribute('aria-label', label);
      button.title = label;
      button.textContent = sign;
      button.addEventListener('click', () => each(what));
      bar.append(button);
    }
    drawings[0].before(bar);
  }
}
