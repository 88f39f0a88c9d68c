// SPDX-License-Identifier: Apache-2.0
"use strict";

// Texts of others become text nodes or attributes, never HTML. Characters that a reader cannot see are written out.
const visible = (text) => String(text ?? "").replace(/[\p{Cc}\p{Bidi_Control}]/gu,
  (c) => (c === "\n" ? " " : "\\u" + c.codePointAt(0).toString(16).padStart(4, "0")));

const byId = (id) => document.getElementById(id);
const drawn = new Set(["svg", "path", "rect", "text"]);

// el returns an element. Attributes and children that are null, undefined or false are left out.
function el(tag, attributes = {}, ...children) {
  const e = drawn.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value != null && value !== false) e.setAttribute(name, visible(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child != null && child !== false) e.append(child instanceof Node ? child : visible(child));
  }
  return e;
}

const quiet = (...content) => el("span", { class: "quiet" }, content);
const small = (...content) => el("div", { class: "small quiet" }, content);

// ---- Times and numbers

let clock = 0; // the server's clock minus the browser's, in milliseconds
const now = () => Date.now() + clock;
const utc = (t) => new Date(t).toISOString().slice(0, 16).replace("T", " ");
const day = (t) => new Date(t).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const round = (x, digits = 1) => String(Number(Number(x).toFixed(Math.abs(x) < 100 ? digits : 0)));
const percent = (x) => (Number.isFinite(parseFloat(x)) ? `${round(parseFloat(x))} %` : null);

function duration(ms) {
  const seconds = Math.round(Math.abs(ms) / 1e3), minutes = Math.round(seconds / 60);
  if (seconds < 90) return `${seconds} s`;
  if (minutes < 120) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
}

// when returns the age of a time, which refreshAges keeps. form is "ago" or "for".
function when(time, form = "ago") {
  const t = Date.parse(time);
  if (!(t > 0)) return null; // Kubernetes' zero times are before 1970
  return el("time", { datetime: new Date(t).toISOString(), title: `${utc(t)} UTC`, "data-form": form }, age(t, form));
}
const age = (t, form) => (form === "for" ? `for ${duration(now() - t)}`
  : t > now() + 1e3 ? `in ${duration(t - now())}` : `${duration(now() - t)} ago`);
function refreshAges() {
  for (const e of document.querySelectorAll("time")) e.textContent = age(Date.parse(e.dateTime), e.dataset.form);
}

// ---- What a database's resource says

const tones = { // the states, the worst first
  "Read-only": "bad", "Not armed": "bad", "Contested": "bad", "Not ready": "bad", "Refused": "bad", "Limited": "bad",
  "In alarm": "busy", "Changing": "busy", "Waiting": "busy", "Armed": "good", "Off": "quiet", "No autopilot": "quiet",
};
const order = Object.keys(tones);

const step = (c) => (c.kind === "Volume" ? `Storage ${c.from} → ${c.to} GB` : `Flavor ${c.from} → ${c.to}`);
const changesOf = (a) => a?.status?.changes ?? [];
const endOf = (c) => [c.endTime, c.startTime, c.requestTime].find((t) => Date.parse(t) > 0);
const isPending = (c) => c.by === "Autopilot" && (c.state === "Requested" || c.state === "Started");
const because = (x, state) => [x.reason !== state && x.reason, x.message].filter(Boolean).join(": ");

// judge returns the worst state of a database, one sentence on it, and since when it holds.
function judge(a) {
  if (!a) return { state: "No autopilot", text: "spec.autopilot of the Rds is not true" };
  const s = a.status ?? {};
  const condition = (type) => (s.conditions ?? []).find((c) => c.type === type);
  const holds = (type) => condition(type)?.status === "True";
  const of = (state, c) => ({ state, text: because(c, state), since: c.lastTransitionTime });
  const armed = condition("Armed"), ready = condition("Ready"), progress = condition("Progressing");
  const alarm = (s.alarms?.rules ?? []).find((r) => r.state === "alarm");
  const pending = changesOf(a).find(isPending);
  if ((s.effectiveMode ?? a.spec?.mode) === "Off") return { state: "Off", text: "The mode is Off" };
  if (!armed) return { state: "Not armed", text: "Waiting for the first check of this database" };
  if (armed.reason === "NotEnabled") return of("Off", armed);
  if (s.readOnly) return { state: "Read-only", text: "The cloud refuses writes", since: s.readOnly.sinceTime };
  if (armed.status !== "True") return of("Not armed", armed);
  if (holds("Contested")) return of("Contested", condition("Contested"));
  if (ready?.status === "False") return of("Not ready", ready);
  if (pending && progress?.status === "False" && progress.reason !== "NoChangePending") return of("Refused", progress);
  if (holds("Limited")) return of("Limited", condition("Limited"));
  if (alarm) {
    const d = (s.decisions ?? []).find((x) => x.metric === alarm.metric);
    return { state: "In alarm", text: d ? because(d) : "Waiting for a decision", since: alarm.stateTime };
  }
  if (pending) return { state: "Changing", text: `${step(pending)} is in progress`, since: pending.requestTime };
  if (holds("Progressing")) return of("Changing", progress);
  if (s.deferred) return { state: "Waiting", text: "A larger flavor has to wait", since: s.deferred.firstTime };
  const ruleTimes = (s.alarms?.rules ?? []).map((r) => r.stateTime);
  const ends = [armed.lastTransitionTime, ...changesOf(a).map(endOf), ...ruleTimes];
  return { state: "Armed", text: "Nothing to do", since: ends.filter(Boolean).sort().at(-1) };
}

// storage returns the volume with the newest measurement of its used space.
function storage(a) {
  const s = a?.status ?? {}, gb = s.instance?.volumeGB;
  if (!gb) return null;
  const seen = (s.intake?.signals ?? []).filter((x) => x.metric === "storage" && x.valuePercent)
    .map((x) => ({ usedGB: parseFloat(x.valuePercent) * gb / 100, time: x.datapointTime ?? x.alarmTime }));
  if (s.used) seen.push({ usedGB: parseFloat(s.used.gb), time: s.used.time });
  const newest = seen.filter((x) => x.usedGB >= 0).sort((x, y) => Date.parse(y.time) - Date.parse(x.time))[0];
  const alarm = (s.alarms?.rules ?? []).find((r) => r.metric === "storage")?.thresholdPercent;
  return { gb, alarm, maxGB: s.maxGB ?? a.spec?.storage?.maxGB, ...newest };
}

const badge = (tone, text) => el("span", { class: `badge ${tone}` }, text);

// bar draws the volume with its used space and the threshold of the alarm, and says the same in words.
function bar(s) {
  if (!s) return "–";
  const part = s.usedGB == null ? 0 : Math.min(100, 100 * s.usedGB / s.gb), full = s.alarm && part >= s.alarm;
  return [
    el("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      el("rect", { class: "volume", width: 100, height: 10 }),
      part > 0 && el("rect", { class: full ? "used over" : "used", width: part, height: 10 }),
      s.alarm && el("path", { class: "alarm", d: `M${s.alarm} 0V10` })),
    el("div", { class: "small" }, el("b", {}, s.usedGB == null ? "?" : round(s.usedGB)), ` of ${s.gb} GB used`,
      s.usedGB != null && ` (${round(100 * s.usedGB / s.gb, 0)} %)`),
    small([s.alarm && `alarm at ${s.alarm} %`, s.maxGB && `at most ${s.maxGB} GB`]
      .filter(Boolean).join(", ")),
  ];
}

function nextCheck(d, list) {
  const a = d.autopilot;
  if (!a || judge(a).state === "Off") return "none";
  const changing = changesOf(a).some(isPending);
  return `within ${duration(1e3 * (changing ? Math.min(list.recheckSeconds, list.sweepSeconds) : list.sweepSeconds))}`;
}

// ---- All databases

let chosen = "", wanted = ""; // the state and the text of the filter
const link = (d) => `#/${encodeURIComponent(d.namespace)}/${encodeURIComponent(d.name)}`;

// table returns a table with the roles written out, because a narrow window shows its rows as cards.
function table(name, columns, rows = [], empty = "None yet.") {
  const row = (cells) => el("tr", { role: "row" }, cells.map((c, i) => el(i ? "td" : "th",
    { role: i ? "cell" : "rowheader", scope: i ? null : "row", "data-label": columns[i] }, c)));
  const body = rows.length ? rows.map((r) => row(r)) : [el("tr", { role: "row" },
    el("td", { role: "cell", colspan: columns.length, class: "quiet" }, empty))];
  return el("table", { role: "table", "aria-label": name },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
      columns.map((c) => el("th", { role: "columnheader", scope: "col" }, c)))),
    el("tbody", { role: "rowgroup" }, body));
}

function showDatabases(list) {
  const all = list.databases.map((d) => ({ ...d, ...judge(d.autopilot) })).sort((x, y) =>
    order.indexOf(x.state) - order.indexOf(y.state) || (link(x) < link(y) ? -1 : 1));
  const counts = Object.groupBy(all, (d) => d.state);
  const chip = (state, count, tone, text = state) => {
    const b = el("button", { type: "button", class: `chip ${tone}`, "aria-pressed": String(chosen === state) },
      el("b", {}, count), ` ${text}`);
    b.onclick = () => { chosen = chosen === state ? "" : state; filter(); };
    b.dataset.state = state;
    return b;
  };
  const chips = [chip("", all.length, "all", "databases"),
    ...order.filter((s) => counts[s]).map((s) => chip(s, counts[s].length, tones[s]))];
  const t = table("Databases", ["Database", "State", "Storage", "Last change", "Next check"], all.map((d) => {
    const last = changesOf(d.autopilot).find((c) => c.endTime);
    const flavor = d.autopilot?.status?.instance?.flavor ?? d.rds?.flavor;
    return [
      [el("a", { href: link(d) }, quiet(`${d.namespace}/`), d.name),
        flavor && small(flavor)],
      [badge(tones[d.state], d.state), " ", el("span", { class: "small quiet" }, when(d.since, "for")),
        d.state !== "Armed" && el("div", { class: "small sentence", title: d.text }, d.text)],
      bar(storage(d.autopilot)),
      last ? [el("div", { class: "small" }, step(last)), small(when(endOf(last)))] : "–",
      el("span", { class: "small quiet" }, nextCheck(d, list)),
    ];
  }), "There is no database yet. Set spec.autopilot: true in an Rds.");
  const rows = all.map((d, i) => ({ d, row: t.tBodies[0].rows[i],
    text: `${d.namespace}/${d.name} ${d.state} ${d.text} ${d.autopilot?.status?.instance?.flavor}`.toLowerCase() }));
  const field = el("input", { id: "filter", type: "search", value: wanted, autocomplete: "off", spellcheck: "false" });
  const shown = el("span", { id: "shown", class: "quiet", role: "status" });
  function filter() {
    wanted = field.value;
    let n = 0;
    for (const { d, row, text } of rows) {
      const match = (!chosen || d.state === chosen) && wanted.toLowerCase().split(/\s+/).every((w) => text.includes(w));
      row.hidden = !match;
      n += match;
    }
    for (const c of chips) c.setAttribute("aria-pressed", String(c.dataset.state === chosen));
    shown.textContent = n === all.length ? "" : `${n} of ${all.length} databases`;
  }
  field.oninput = filter;
  if (chosen && !counts[chosen]) chosen = "";
  filter();
  return [
    el("div", { class: "chips", role: "group", "aria-label": "Databases by state" }, chips),
    el("div", { class: "filter" }, el("label", { for: "filter" }, "Filter"), field, shown), t,
  ];
}

// ---- Plots

const W = 380, H = 170, left = 34, right = 374, upper = 20, lower = 148;

// ticks returns round numbers from 0 to at least max.
function ticks(max) {
  const size = 10 ** Math.floor(Math.log10(max));
  const unit = [0.2, 0.25, 0.5, 1, 2.5].find((u) => max / (u * size) <= 5.5) * size;
  return Array.from({ length: Math.ceil(max / unit - 1e-9) + 1 }, (_, i) => i * unit);
}

const spanName = (span) => (span.hours > 48 ? `${span.hours / 24} days` : `${span.hours} hours`);

// plot draws lines over the time of a span. A line is {class, label, points}, or has one value instead of points.
function plot(title, span, unit, lines, marks) {
  const until = Date.parse(span.until) / 1e3, from = until - span.hours * 3600;
  lines = lines.filter((l) => l && (l.points?.length || l.value)).map((l) => ({ ...l,
    points: l.points?.filter(([t]) => t >= from && t <= until) ?? [[from, l.value], [until, l.value]] }));
  const figure = (content, keys = []) => el("figure", {}, el("figcaption", {}, el("b", {}, title), keys), content);
  const measured = lines.find((l) => l.class === "used")?.points ?? [];
  if (!measured.length) return figure(el("p", { class: "quiet" }, "Cloud Eye has no measurement."));
  const values = measured.map((p) => p[1]), highest = Math.max(1, ...lines.flatMap((l) => l.points.map((p) => p[1])));
  const levels = unit === "%" ? [0, 25, 50, 75, 100] : ticks(1.02 * highest);
  const x = (t) => round(left + (right - left) * (t - from) / (until - from));
  const y = (v) => round(lower - (lower - upper) * Math.min(v, levels.at(-1)) / levels.at(-1));
  const pieces = (l) => { // a line ends where three measurements are missing
    const all = [];
    l.points.forEach(([t, v], i) => {
      if (!i || (l.value == null && t - l.points[i - 1][0] > 3.5 * span.periodSeconds)) all.push([]);
      all.at(-1).push(`${x(t)} ${y(v)}`);
    });
    return all;
  };
  const long = span.hours > 48, every = long ? 86400 * 3 : 3600 * 6, times = [];
  for (let t = Math.ceil(from / every) * every; t <= until; t += every) times.push(t);
  const lowest = round(Math.min(...values)), most = round(Math.max(...values));
  const summary = `${title}, last ${spanName(span)}: ${lowest} to ${most} ${unit}. `
    + lines.map((l) => l.label).join(", ") + marks.map((m) => `. ${m.letter}: ${step(m.change)}`).join("");
  return figure(el("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": summary },
    levels.map((v) => [el("path", { class: "grid", d: `M${left} ${y(v)}H${right}` }),
      el("text", { x: left - 6, y: y(v), dy: 4, "text-anchor": "end" }, round(v))]),
    times.map((t) => el("text", { x: x(t), y: H - 6, "text-anchor": x(t) > right - 16 ? "end" : "middle" },
      long ? day(t * 1e3) : utc(t * 1e3).slice(11))),
    pieces({ points: measured }).map((p) =>
      el("path", { class: "area", d: `M${p[0].split(" ")[0]} ${lower}L${p.join("L")}V${lower}Z` })),
    marks.map((m) => [el("path", { class: "change", d: `M${x(m.t)} ${upper - 4}V${lower}` }),
      el("text", { class: "letter", x: x(m.t), y: 12, "text-anchor": "middle" }, m.letter)]),
    lines.toReversed().map((l) => pieces(l).map((p) =>
      el("path", { class: `line ${l.class}`, d: `M${p.join("L")}` })))),
  lines.map((l) => el("span", { class: `key ${l.class}` }, l.label)));
}

// showSeries draws three plots for each span. A span that failed says so, and the other one stays.
function showSeries(a, series) {
  if (!series?.spans) {
    return series?.error ? notice(series.error) : el("p", { class: "quiet" }, "Reading from Cloud Eye …");
  }
  const at = (metric) => a.status?.alarms?.rules?.find((r) => r.metric === metric)?.thresholdPercent;
  const last = (points) => points.at(-1)?.[1] ?? 0;
  return series.spans.map((span) => {
    const until = Date.parse(span.until) / 1e3, from = until - span.hours * 3600;
    const marks = changesOf(a).map((change) => ({ change, t: Date.parse(endOf(change)) / 1e3 }))
      .filter((m) => m.t >= from && m.t <= until).sort((m, n) => m.t - n.t).slice(0, 26)
      .map((m, i) => ({ ...m, letter: String.fromCharCode(65 + i) }));
    const used = span.usedGB ?? [], size = span.sizeGB ?? [], limit = at("storage");
    const percentPlot = (metric, title, points = span.percent?.[metric] ?? []) => plot(title, span, "%", [
      { class: "used", label: `${round(last(points))} % used`, points },
      at(metric) && { class: "alarm", label: `alarm at ${at(metric)} %`, value: at(metric) }], marks);
    return el("section", { "aria-label": `Last ${spanName(span)}` }, el("h3", {}, `Last ${spanName(span)}`),
      span.error ? notice(`Cannot read from Cloud Eye: ${span.error}`) : el("div", { class: "plots" },
        plot("Storage", span, "GB", [
          { class: "used", label: `${round(last(used))} GB used`, points: used },
          limit && { class: "alarm", label: `alarm at ${round(last(size) * limit / 100, 0)} GB`,
            points: size.map(([t, v]) => [t, v * limit / 100]) },
          { class: "size", label: `size ${round(last(size))} GB`, points: size }], marks),
        percentPlot("cpu", "CPU"), percentPlot("memory", "Memory")),
      !span.error && marks.length > 0 && el("ul", { class: "marks small" }, marks.map((m) => el("li", {},
        el("b", {}, m.letter), " ", step(m.change), " ", quiet(when(endOf(m.change)))))));
  });
}

// ---- One database

function showDatabase(list, series) {
  const d = list.databases[0], a = d.autopilot, j = judge(a), s = a?.status ?? {}, i = s.instance;
  const time = (t) => (Date.parse(t) > 0 ? [`${utc(t)} `, quiet(when(t))] : "–");
  const card = (name, ...content) => el("div", { class: "card" }, el("dt", {}, name), el("dd", {}, content));
  const tone = (c) => ({ Completed: "good", Withdrawn: "quiet" })[c.state] ?? (isPending(c) ? "busy" : "bad");
  const ruleTone = { ok: "good", alarm: "busy" };
  const value = (x) => x.valuePercent && ` at ${percent(x.valuePercent)}`;
  const limits = a?.spec?.flavor ?? {};
  const head = [
    el("p", { class: "state" }, badge(tones[j.state], j.state), quiet(when(j.since, "for")), el("span", {}, j.text)),
    el("dl", { class: "cards" },
      card("Storage", bar(storage(a))),
      card("Flavor", i?.flavor ?? "–", i && small(`${i.vcpus ?? "?"} vCPUs, ${i.memoryGB ?? "?"} GB memory`),
        limits.maxVCPUs && small(`at most ${limits.maxVCPUs} vCPUs`),
        limits.maxMemoryGB && small(`at most ${limits.maxMemoryGB} GB memory`)),
      card("The Rds requests", d.rds ? `${d.rds.volumeGB} GB` : "There is no Rds",
        d.rds && small(d.rds.flavor)),
      card("Mode", s.effectiveMode ?? a?.spec?.mode ?? "–", small(`next check ${nextCheck(d, list)}`)),
      card("Instance", i?.status ?? "–", i && small(i.id))),
  ];
  if (!a) return head;
  const alarms = ["storage", "cpu", "memory"].flatMap((metric) => {
    const of = (all) => all?.find((x) => x.metric === metric), r = of(s.alarms?.rules), g = of(s.intake?.signals);
    return r || g ? [[metric, r ? `${r.thresholdPercent} %` : "no rule",
      r?.state ? badge(ruleTone[r.state] ?? "bad", r.state) : "–", g ? [g.state, value(g)] : "–",
      g ? time(g.alarmTime) : "–"]] : [];
  });
  return [...head,
    el("h2", {}, "Measurements"), showSeries(a, series),
    el("h2", {}, "Conditions"), table("Conditions", ["Condition", "Status", "Reason", "Message", "Since"],
      s.conditions?.map((c) => [c.type, c.status, c.reason, c.message, time(c.lastTransitionTime)])),
    el("h2", {}, "Changes"), table("Changes", ["Change", "State", "By", "Because of", "Requested", "Ended"],
      changesOf(a).map((c) => [step(c), badge(tone(c), c.state), c.by ?? "–",
        [c.metrics?.join(", "), value(c)], time(c.requestTime), c.endTime ? time(c.endTime) : "–"])),
    el("h2", {}, "Decisions"), table("Decisions", ["Metric", "Action", "Reason", "Message", "Time"],
      s.decisions?.map((x) => [x.metric, x.action, x.reason, x.message,
        [time(x.lastTime ?? x.time), x.count > 1 && quiet(` (${x.count} times)`)]])),
    el("h2", {}, "Signals and alarm rules"), table("Signals and alarm rules",
      ["Metric", "Alarm at", "Rule", "Last signal", "Sent"], alarms),
    el("p", { class: "quiet small" }, "Times are in UTC. The alarm in the plots is that of the present threshold."),
  ];
}

// ---- The page

const notice = (text) => el("p", { class: "notice" }, text);
const every = 10e3, everySeries = 60e3; // milliseconds
let shown = "", series, readAt = 0, seriesAt = 0, paused = false, timer, visit = 0;

async function get(path) {
  const r = await fetch(path, { signal: AbortSignal.timeout(20e3) });
  const body = await r.json().catch(() => ({}));
  if (!r.ok) throw new Error(body.error ?? `the service answered with status ${r.status}`);
  return body;
}

// draw replaces the view if there is news, and keeps the focus. Without news it only updates the ages.
function draw(list, name) {
  const news = JSON.stringify([location.hash, list.databases, series]);
  if (news === shown) return refreshAges();
  shown = news;
  const focused = document.activeElement;
  const same = { id: focused?.id, href: focused?.getAttribute("href"), state: focused?.dataset?.state };
  const at = focused?.selectionStart;
  byId("view").replaceChildren(...(name ? showDatabase(list, series) : showDatabases(list)).flat());
  if (focused?.isConnected) return;
  const again = [...byId("view").querySelectorAll("a, button, input")].find((e) => (same.id ? e.id === same.id
    : same.href ? e.getAttribute("href") === same.href : same.state != null && e.dataset.state === same.state));
  again?.focus({ preventScroll: true });
  if (at != null) again?.setSelectionRange?.(at, at);
}

// refresh reads what the address names, and draws it. What fails is a notice, and what was read before stays.
async function refresh() {
  clearTimeout(timer);
  const mine = visit, [, namespace, name] = location.hash.startsWith("#/") ? location.hash.split("/") : [];
  const path = "api/databases" + (name ? `/${namespace}/${name}` : "");
  const notices = [];
  try {
    const list = await get(path);
    if (mine !== visit) return;
    readAt = Date.now();
    clock = Date.parse(list.time) - readAt;
    byId("version").textContent = visible(list.version);
    if (!list.synced) notices.push("The caches are not filled yet: databases may be missing.");
    if (!list.reachable) notices.push("The Kubernetes API does not answer: nothing can be stored, this may be old.");
    draw(list, name);
    if (name && list.databases[0].autopilot && Date.now() - seriesAt >= everySeries) {
      seriesAt = Date.now();
      const answer = await get(path + "/series").catch((e) => ({ error: `${e.message}` }));
      if (mine !== visit) return;
      series = answer;
      draw(list, name);
    }
  } catch (e) {
    if (mine !== visit) return;
    notices.push(`Cannot read from the service: ${e.message}.${shown ? " This is what it said before." : ""}`);
  }
  byId("notices").replaceChildren(...notices.map(notice));
  byId("read").replaceChildren(...(readAt ? ["Read ", when(new Date(now() - Date.now() + readAt).toISOString())] : []));
  if (!paused) timer = setTimeout(() => (document.hidden ? 0 : refresh()), every);
}

const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

// showAddress shows what the address names.
function showAddress() {
  if (location.hash && !location.hash.startsWith("#/")) return; // the link to the content
  const [, namespace, name] = location.hash.split("/").map(decode);
  byId("title").replaceChildren(...(name ? [quiet(namespace, "/"), visible(name)] : ["Databases"]));
  byId("back").hidden = !name;
  document.title = `${name ? visible(`${namespace}/${name}`) : "Databases"} – rds-autopilot`;
  visit++;
  shown = "", series = undefined, seriesAt = 0;
  byId("view").replaceChildren(el("p", { class: "quiet" }, "Reading …"));
  if (visit > 1) byId("title").focus();
  refresh();
}

byId("pause").onclick = () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  clearTimeout(timer);
  if (!paused) refresh();
};
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !paused && Date.now() - readAt >= every) refresh();
});
addEventListener("hashchange", showAddress);
showAddress();
