// Replaces the content of the page around this one by the width of this one and the faults of its
// layout, one on each line.
const MIN_PIXELS = 11;
const faults = new Set();
const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const isInside = (inner, outer) =>
  inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
  inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
const isOver = (a, b) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;

const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim();
  const parent = walker.currentNode.parentElement;
  if (text === "" || parent.closest("title, option") || !isShown(parent)) continue;
  const scale = parent instanceof SVGElement ? parent.getScreenCTM().a : 1;
  const pixels = parseFloat(getComputedStyle(parent).fontSize) * scale;
  if (pixels < MIN_PIXELS) faults.add(`text of ${pixels.toFixed(1)} px: ${text}`);
  if (text.includes("`")) faults.add(`backtick: ${text}`);
}
for (const drawing of document.querySelectorAll("svg")) {
  const texts = [...drawing.querySelectorAll("text")].filter(isShown);
  const frame = drawing.getBoundingClientRect();
  texts.forEach((text, index) => {
    const box = text.getBoundingClientRect();
    if (!isInside(box, frame)) faults.add(`clipped in a drawing: ${text.textContent}`);
    for (const other of texts.slice(index + 1)) {
      if (isOver(box, other.getBoundingClientRect())) {
        faults.add(`one text over another: ${text.textContent}, ${other.textContent}`);
      }
    }
  });
}
for (const element of document.querySelectorAll("main *")) {
  const isClipping = ["hidden", "clip"].includes(getComputedStyle(element).overflowX);
  if (isClipping && isShown(element) && element.scrollWidth > element.clientWidth + 1) {
    faults.add(`clipped: ${element.textContent.trim().slice(0, 60)}`);
  }
}
for (const name of document.querySelectorAll("main tbody th")) {
  const table = name.closest("table");
  const room = table.parentElement.clientWidth;
  const isFixed = isShown(name) && getComputedStyle(name).position === "sticky";
  if (isFixed && table.offsetWidth > room + 1 && name.offsetWidth > room * 0.7) {
    faults.add(`covers the values: ${name.textContent.trim()}`);
  }
}
if (document.documentElement.scrollWidth > window.innerWidth) {
  faults.add(`the page is ${document.documentElement.scrollWidth} px wide`);
}
const lines = [`width ${window.innerWidth}`, ...faults].map((line) => line.replace(/\s+/g, " "));
parent.document.body.textContent = lines.map((line) => `${line}\n`).join("");
