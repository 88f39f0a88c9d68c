// Returns a sentence for each fault of the page that hinders people who use a keyboard, a screen reader or much contrast. The rules
// are those of axe-core that such pages can break.
(() => {
  const faults = [];
  const report = (el, text) => faults.push(`${text}: ${el.outerHTML.slice(0, 120)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (el) => el.checkVisibility({ visibilityProperty: true }) && !el.closest("[aria-hidden=true]");
  const name = (el) => (el.getAttribute("aria-label") || el.textContent || "").trim();

  if (!document.documentElement.lang) faults.push("the document has no language");
  if (!document.title.trim()) faults.push("the document has no title");
  if (/user-scalable\s*=\s*no|maximum-scale/.test(document.querySelector("meta[name=viewport]")?.content ?? "")) faults.push("the page cannot be enlarged");
  for (const one of ["main", "h1"]) if (all(one).length !== 1) faults.push(`there are ${all(one).length} ${one}`);
  let level = 0;
  for (const h of all("h1,h2,h3,h4,h5,h6")) {
    const next = Number(h.tagName[1]);
    if (next > level + 1) report(h, "a level of headings is left out");
    if (!name(h)) report(h, "a heading is empty");
    level = next;
  }

  const ids = new Set();
  for (const el of all("[id]")) {
    if (ids.has(el.id)) report(el, "an id occurs twice");
    ids.add(el.id);
  }
  for (const attribute of ["for", "list", "aria-labelledby", "aria-describedby", "aria-controls"])
    for (const el of all(`[${attribute}]`))
      for (const id of el.getAttribute(attribute).split(/\s+/)) if (!ids.has(id)) report(el, `${attribute} names no element`);

  for (const el of all('a[href^="#"]:not([href^="#/"])')) if (!ids.has(el.hash.slice(1))) report(el, "a link leads to no element of the page");

  for (const el of all("input:not([type=hidden]),select,textarea").filter(shown))
    if (![...(el.labels ?? [])].some((l) => l.textContent.trim()) && !el.getAttribute("aria-label")) report(el, "a field has no label");
  for (const el of all("a[href],button,summary").filter(shown)) if (!name(el)) report(el, "a link or button has no name");
  for (const el of all("img:not([alt])")) report(el, "a picture has no text");
  for (const el of all("svg").filter(shown)) if (el.getAttribute("role") !== "img" || !name(el)) report(el, "a drawing has no role and text");
  for (const el of all("[tabindex]")) if (Number(el.getAttribute("tabindex")) > 0) report(el, "a tabindex above 0");
  for (const el of all("th:not([scope])")) report(el, "a header cell has no scope");
  for (const el of all("ul > *,ol > *")) if (el.tagName !== "LI") report(el, "a list has a child that is no item");
  for (const el of all("li")) if (!el.closest("ul,ol")) report(el, "an item is in no list");
  for (const el of all("dl > *")) if (!["DT", "DD", "DIV"].includes(el.tagName)) report(el, "a list of terms has another child");
  const roles = ["img", "region", "search", "status", "group", // and those of a table whose rows become cards
    "table", "rowgroup", "row", "columnheader", "rowheader", "cell"];
  for (const el of all("[role]")) if (!roles.includes(el.getAttribute("role"))) report(el, "an unexpected role");
  for (const el of all("[role=region],nav,section")) if (!el.getAttribute("aria-label")) report(el, "a region has no name");
  for (const el of all("[aria-sort]")) if (el.tagName !== "TH") report(el, "aria-sort outside of a header cell");
  for (const el of all("*").filter(shown)) {
    const style = getComputedStyle(el);
    if (/auto|scroll/.test(style.overflowX) && el.scrollWidth > el.clientWidth && el.tabIndex < 0) report(el, "no key scrolls this");
  }

  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (words.nextNode()) {
    for (const m of words.currentNode.data.matchAll(/(?<!\S)[A-Za-z]{2,24}(?!\S)/g)) {
      range.setStart(words.currentNode, m.index);
      range.setEnd(words.currentNode, m.index + m[0].length);
      if (new Set([...range.getClientRects()].filter((r) => r.right > 0).map((r) => r.top)).size > 1) report(words.currentNode.parentElement, `the word ${m[0]} breaks`);
    }
  }

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const behind = (el) => {
    for (let e = el; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0, 255] : [255, 255, 255, 255];
  };
  const luminance = (c) => {
    const [r, g, b] = [c[0], c[1], c[2]].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const a = luminance(one), b = luminance(other);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  for (const el of all(".bar .used")) {
    const free = el.parentElement.querySelector(".volume"), ratio = contrast(rgba(getComputedStyle(el).fill), rgba(getComputedStyle(free).fill));
    if (ratio < 3) report(el, `used and free space have a contrast of ${ratio.toFixed(2)}`);
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const el = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(el) || !shown(el) || el.closest(":disabled,script,style,option,datalist")) continue;
    seen.add(el);
    const style = getComputedStyle(el);
    const ratio = contrast(rgba(el.closest("svg") ? style.fill : style.color), behind(el));
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) report(el, `a contrast of ${ratio.toFixed(2)}`);
  }
  return faults;
})();
