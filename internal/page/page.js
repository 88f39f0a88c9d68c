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
const isPending = (c) => c.state === "Requested" || c.state === "Started";
const stateOf = (c) => c.state || "–";
const beginOf = (c) => c.requestTime;
const endOf = (c) => c.endTime;
const lastOf = (c) => [endOf(c), c.startTime, beginOf(c)].find((t) => Date.parse(t) > 0);

// judge returns the worst state of a database, the reason of it and one sentence on it, and since when it holds.
function judge(a) {
  if (!a) return { state: "No autopilot", text: "spec.autopilot of the Rds is not true" };
  const s = a.status ?? {};
  const condition = (type) => (s.conditions ?? []).find((c) => c.type === type);
  const holds = (type) => condition(type)?.status === "True";
  const of = (state, c) => ({ state, reason: c.reason !== state && c.reason, text: c.message,
    since: c.lastTransitionTime });
  const armed = condition("Armed"), ready = condition("Ready"), progress = condition("Progressing");
  const alarm = (s.alarms?.rules ?? []).find((r) => r.state === "alarm");
  const pending = changesOf(a).find(isPending), volume = storage(a);
  const held = volume?.isOver && s.held?.some((h) => h.kind === "Volume");
  if ((s.effectiveMode ?? a.spec?.mode) === "Off") return { state: "Off", text: "The mode is Off" };
  if (!armed) return { state: "Not armed", text: "Waiting for the first check of this database" };
  if (armed.reason === "NotEnabled") return of("Off", armed);
  if (s.readOnly) return { state: "Read-only", text: "The cloud refuses writes", since: s.readOnly.sinceTime };
  if (armed.status !== "True") return of("Not armed", armed);
  if (holds("Contested")) return of("Contested", condition("Contested"));
  if (ready?.status === "False") return of("Not ready", ready);
  if (!pending && changesOf(a).some((c) => c.state === "Refused") && progress) return of("Refused", progress);
  if (holds("Limited")) return of("Limited", condition("Limited"));
  if (alarm || held) {
    const d = (s.decisions ?? []).find((x) => x.metric === (alarm?.metric ?? "storage"));
    return { state: "In alarm", reason: d?.reason, text: d?.message ?? "Waiting for a decision",
      since: alarm ? alarm.stateTime : s.overThresholdSince };
  }
  if (pending) return { state: "Changing", text: `${step(pending)} is in progress`, since: beginOf(pending) };
  if (holds("Progressing")) return of("Changing", progress);
  if (volume?.isOver) {
    return { state: "Waiting", since: s.overThresholdSince ?? volume.time,
      text: `Over the threshold, waiting for Cloud Eye's ${a.spec?.storage?.alarm?.count ?? 5} values` };
  }
  if (s.deferred) return { state: "Waiting", text: "A larger flavor has to wait", since: s.deferred.firstTime };
  const ruleTimes = (s.alarms?.rules ?? []).map((r) => r.stateTime);
  const ends = [armed.lastTransitionTime, ...changesOf(a).map(lastOf), ...ruleTimes];
  return { state: "Armed", text: "Nothing to do", since: ends.filter(Boolean).sort().at(-1) };
}

// storage returns the volume with the newest measurement of its used space.
function storage(a) {
  const s = a?.status ?? {}, gb = s.instance?.volumeGB;
  if (!gb) return null;
  const sizeAt = (time) => changesOf(a).findLast((c) => c.kind === "Volume" && stateOf(c) === "Completed"
    && Date.parse(endOf(c)) > Date.parse(time))?.from ?? gb; // a percentage is one of the size at its time
  const seen = (s.intake?.signals ?? []).filter((x) => x.metric === "storage" && x.valuePercent)
    .map((x) => ({ ...x, time: x.datapointTime ?? x.alarmTime }))
    .map((x) => ({ usedGB: parseFloat(x.valuePercent) * sizeAt(x.time) / 100, time: x.time }));
  if (s.used) seen.push({ usedGB: parseFloat(s.used.gb), time: s.used.time });
  const newest = seen.filter((x) => x.usedGB >= 0).sort((x, y) => Date.parse(y.time) - Date.parse(x.time))[0];
  const alarm = (s.alarms?.rules ?? []).find((r) => r.metric === "storage")?.thresholdPercent;
  const part = newest && Math.min(100, 100 * newest.usedGB / gb); // in percent
  return { gb, alarm, maxGB: s.maxGB ?? a.spec?.storage?.maxGB, part, isOver: part >= alarm, ...newest };
}

const badge = (tone, text) => el("span", { class: `badge ${tone}` }, text);

// bar draws the volume with its used space and the threshold of the alarm, and says the same in words.
function bar(s) {
  if (!s) return "–";
  return [
    el("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      el("rect", { class: "volume", width: 100, height: 10 }),
      s.part > 0 && el("rect", { class: s.isOver ? "used over" : "used", width: s.part, height: 10 }),
      s.alarm && el("path", { class: "alarm", d: `M${s.alarm} 0V10` })),
    el("div", { class: "small" }, el("b", {}, s.usedGB == null ? "?" : round(s.usedGB)), ` of ${s.gb} GB used`,
      s.usedGB != null && ` (${round(100 * s.usedGB / s.gb, 0)}\u00a0%)`),
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
  const all = list.databases.map((d) => ({ ...d, ...judge(d.autopilot) })) // sort keeps the order by name
    .map((d) => ({ ...d, text: [d.reason, d.text].filter(Boolean).join(": ") }))
    .sort((x, y) => order.indexOf(x.state) - order.indexOf(y.state));
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
    const last = changesOf(d.autopilot).find((c) => c.endTime && c.state !== "Withdrawn");
    const flavor = d.autopilot?.status?.instance?.flavor ?? d.rds?.flavor;
    return [
      [el("a", { href: link(d) }, quiet(`${d.namespace}/`), d.name),
        flavor && small(flavor)],
      [badge(tones[d.state], d.state), " ", el("span", { class: "small quiet" }, when(d.since, "for")),
        d.state !== "Armed" && el("div", { class: "small sentence", title: d.text }, d.text)],
      bar(storage(d.autopilot)),
      last ? [el("div", { class: "small" }, step(last)), small(when(lastOf(last)))] : "–",
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

const W = 380, H = 170, left = 34, right = 363, upper = 20, lower = 148;

// ticks returns round numbers from 0 to at least max.
function ticks(max) {
  const size = 10 ** Math.floor(Math.log10(max));
  const unit = [0.2, 0.25, 0.5, 1, 2.5].find((u) => max / (u * size) <= 5.5) * size;
  return Array.from({ length: Math.ceil(max / unit - 1e-9) + 1 }, (_, i) => i * unit);
}

const minute = 60, hour = 3600, oneDay = 86400; // seconds

// limits returns the time that the plots of a span show. They begin at the first measurement, so that those of a young
// database are not empty at the left. In a span with isOld, an earlier one is outside of the span.
function limits(span) {
  const until = Date.parse(span.until) / 1e3, begin = until - span.hours * hour;
  const all = [span.usedGB, span.sizeGB, ...Object.values(span.percent ?? {})];
  const times = all.flatMap((points) => points?.[0]?.[0] ?? []);
  const first = Math.min(...times);
  if (span.isOld || !times.length || first < begin + span.hours * hour / 12) {
    return { from: begin, until, name: span.hours > 48 ? `Last ${span.hours / 24} days` : `Last ${span.hours} hours` };
  }
  return { from: Math.min(first, until - minute), until, first, name: "Since the first measurement" };
}

// sizes replaces the average that Cloud Eye has for a period with a growth by the size after it. now is the size now.
function sizes(points, now) {
  return points.map(([t, v], i) => {
    const before = points[i - 1]?.[1] ?? 0, after = points[i + 1]?.[1] ?? now;
    return [t, v % 10 && before < v && v < after ? after : v];
  });
}

// labelsOf returns the letters of the marks at their places. Letters that would overlap become a range, such as A–C.
function labelsOf(marks, x) {
  const labels = [];
  for (const m of marks) {
    let l = { first: m.letter, last: m.letter, begin: Number(x(m.t)), end: Number(x(m.t)) };
    for (;;) {
      l.half = l.first === l.last ? 7 : 15;
      l.middle = Math.min((l.begin + l.end) / 2, W - l.half);
      const before = labels.at(-1);
      if (!before || before.middle + before.half <= l.middle - l.half) break;
      l = { ...l, first: labels.pop().first, begin: before.begin };
    }
    labels.push(l);
  }
  return labels.map((l) => ({ x: round(l.middle), text: l.first === l.last ? l.first : `${l.first}–${l.last}` }));
}

// plot draws lines over the time of a span. A line is {class, label, points}, or has one value instead of points.
function plot(title, span, unit, lines, marks) {
  const { from, until, name } = limits(span);
  lines = lines.filter((l) => l && (l.points?.length || l.value)).map((l) => ({ ...l,
    points: l.points?.filter(([t]) => t >= from && t <= until) ?? [[from, l.value], [until, l.value]] }));
  const figure = (content, keys = []) => el("figure", {}, el("figcaption", {}, el("b", {}, title), keys), content);
  const measured = lines.find((l) => l.class === "used")?.points ?? [];
  if (!measured.length) return figure(el("p", { class: "quiet" }, "Cloud Eye has no measurement."));
  const values = measured.map((p) => p[1]), highest = Math.max(1, ...lines.flatMap((l) => l.points.map((p) => p[1])));
  const levels = unit === "%" ? [0, 25, 50, 75, 100] : ticks(1.02 * highest);
  const x = (t) => round(left + (right - left) * (t - from) / (until - from));
  const y = (v) => round(lower - (lower - upper) * Math.min(v, levels.at(-1)) / levels.at(-1));
  const pieces = (l) => { // a line ends where three measurements are missing; sizes change in steps
    const all = [];
    l.points.forEach(([t, v], i) => {
      if (!i || (l.value == null && t - l.points[i - 1][0] > 3.5 * span.periodSeconds)) all.push([]);
      else if (l.class !== "used") all.at(-1).push(`${x(t)} ${y(l.points[i - 1][1])}`);
      all.at(-1).push(`${x(t)} ${y(v)}`);
    });
    return all;
  };
  const every = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 1440, 3 * 1440].map((minutes) => minutes * minute)
    .find((unit) => (until - from) / unit <= 7);
  const times = [];
  for (let t = Math.ceil(from / every) * every; t <= until; t += every) times.push(t);
  const lowest = round(Math.min(...values)), most = round(Math.max(...values));
  const summary = `${title}, ${name}: ${lowest} to ${most} ${unit}. `
    + lines.map((l) => l.label).join(", ") + marks.map((m) => `. ${m.letter}: ${step(m.change)}`).join("");
  return figure(el("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": summary },
    levels.map((v) => [el("path", { class: "grid", d: `M${left} ${y(v)}H${right}` }),
      el("text", { x: left - 6, y: y(v), dy: 4, "text-anchor": "end" }, round(v))]),
    times.map((t) => el("text", { x: x(t), y: H - 6, "text-anchor": "middle" },
      every < oneDay ? utc(t * 1e3).slice(11) : day(t * 1e3))),
    pieces({ points: measured }).map((p) =>
      el("path", { class: "area", d: `M${p[0].split(" ")[0]} ${lower}L${p.join("L")}V${lower}Z` })),
    marks.map((m) => el("path", { class: "change", d: `M${x(m.t)} ${upper - 4}V${lower}` })),
    labelsOf(marks, x).map((l) => el("text", { class: "letter", x: l.x, y: 12, "text-anchor": "middle" }, l.text)),
    lines.toReversed().map((l) => pieces(l).map((p) =>
      el("path", { class: `line ${l.class}`, d: `M${p.join("L")}h0` })))), // h0 makes a single measurement a dot
  lines.map((l) => el("span", { class: `key ${l.class}` }, l.label)));
}

// showSeries draws three plots for each span. A span that failed says so, and the other one stays. The second one is
// left out as long as the first one shows all measurements.
function showSeries(a, series) {
  if (!series?.spans) {
    return series?.error ? notice(series.error) : el("p", { class: "quiet" }, "Reading from Cloud Eye …");
  }
  const at = (metric) => a.status?.alarms?.rules?.find((r) => r.metric === metric)?.thresholdPercent;
  const last = (points) => points.at(-1)?.[1] ?? 0;
  const [one, two] = series.spans;
  one.isOld = one.error || two.error || limits(two).from < limits(two).until - one.hours * hour;
  return (one.isOld ? series.spans : [one]).map((span) => {
    const { from, until, first, name } = limits(span);
    const marks = changesOf(a).map((change) => ({ change, t: Date.parse(lastOf(change)) / 1e3 }))
      .filter((m) => m.t >= from && m.t <= until).sort((m, n) => m.t - n.t).slice(-26)
      .map((m, i) => ({ ...m, letter: String.fromCharCode(65 + i) }));
    const used = span.usedGB ?? [], limit = at("storage");
    const size = sizes(span.sizeGB ?? [], a.status?.instance?.volumeGB);
    const percentPlot = (metric, title, points = span.percent?.[metric] ?? []) => plot(title, span, "%", [
      { class: "used", label: `${round(last(points))} % used`, points },
      at(metric) && { class: "alarm", label: `alarm at ${at(metric)} %`, value: at(metric) }], marks);
    return el("section", { "aria-label": name },
      el("h3", {}, name, first && [", ", when(new Date(first * 1e3).toISOString())]),
      span.error ? notice(`Cannot read from Cloud Eye: ${span.error}`) : el("div", { class: "plots" },
        plot("Storage", span, "GB", [
          { class: "used", label: `${round(last(used))} GB used`, points: used },
          limit && { class: "alarm", label: `alarm at ${round(last(size) * limit / 100, 0)} GB`,
            points: size.map(([t, v]) => [t, v * limit / 100]) },
          { class: "size", label: `size ${round(last(size))} GB`, points: size }], marks),
        percentPlot("cpu", "CPU"), percentPlot("memory", "Memory")),
      !span.error && marks.length > 0 && el("ul", { class: "marks small" }, marks.map((m) => el("li", {},
        el("b", {}, m.letter), " ", step(m.change), " ", quiet(when(lastOf(m.change)))))));
  });
}

// ---- One database

const reasonsPage = "https://github.com/mcsps/rds-autopilot/blob/main/docs/runbooks/reasons.md";

// explained returns a reason with a link to its section of the documents. These reasons have no section.
const unexplained = ["NoChangePending", "WithinCaps", "Uncontested", "NotYet"];
const explained = (reason) => (/^[A-Za-z]+$/.test(reason) && !unexplained.includes(reason)
  ? el("a", { href: `${reasonsPage}#${reason.toLowerCase()}`, rel: "noreferrer" }, reason) : reason);

// managerOf returns who manages an instance that another object has claimed. Only the message of Armed says it.
function managerOf(a) {
  const armed = (a?.status?.conditions ?? []).find((c) => c.type === "Armed" && c.reason === "InstanceClaimed");
  const [, text, namespace, name, cluster] =
    /^(([^\s/]+)\/(\S+)( of cluster \S+)?) manages /.exec(armed?.message) ?? [];
  return text && !cluster ? el("a", { href: link({ namespace, name }) }, text) : text;
}

// policy returns the rows of the policy: what the autopilot may do to this database.
function policy(a) {
  const { mode, apply, instanceID, storage: volume = {}, flavor = {} } = a.spec ?? {};
  const s = a.status ?? {}, b = s.baseline;
  const listed = (...parts) => parts.filter(Boolean).join(", ");
  const trigger = (name, t) => (t?.enabled === false ? `${name} is not watched`
    : t && `${name} alarm at ${t.thresholdPercent} %`);
  const cpus = flavor.maxVCPUs ?? (b && 4 * b.vcpus), memory = flavor.maxMemoryGB ?? (b && 4 * b.memoryGB);
  const w = flavor.window;
  return [
    ["Mode", listed(mode,
      s.effectiveMode && s.effectiveMode !== mode && `limited to ${s.effectiveMode} by --mode of the service`)],
    ["Applied by", listed(apply === "Cloud" ? "the autopilot, in the cloud" : "the operator of the Rds", instanceID)],
    ["Storage", listed(volume.stepGB && `steps of ${volume.stepGB} GB`,
      volume.stepPercent && `or ${volume.stepPercent} % if that is more`,
      (s.maxGB ?? volume.maxGB) && `at most ${s.maxGB ?? volume.maxGB} GB`,
      volume.thresholdPercent && `alarm at ${volume.thresholdPercent} % or earlier`)],
    ["Flavor", listed(trigger("CPU", flavor.cpu), trigger("memory", flavor.memory), cpus && `at most ${cpus} vCPUs`,
      memory && `at most ${memory} GB memory`)],
    ["Changes of flavor", listed(flavor.cooldownSeconds != null && `cooldown ${duration(1e3 * flavor.cooldownSeconds)}`,
      flavor.maxChangesPerDay && `at most ${flavor.maxChangesPerDay} in 24 hours`,
      w ? `only ${w.days?.join(", ") ?? "every day"} ${w.start}–${w.end} ${w.timeZone ?? "UTC"}` : "at any time")],
  ].filter(([, value]) => value);
}

// showDatabase leaves the place of the plots empty, because they are drawn when Cloud Eye has answered.
function showDatabase(list) {
  const d = list.databases[0], a = d.autopilot, j = judge(a), s = a?.status ?? {}, i = s.instance;
  const manager = managerOf(a);
  const time = (t) => (Date.parse(t) > 0 ? [el("span", { class: "whole" }, utc(t)), " ", quiet(when(t))] : "–");
  const card = (name, ...content) => el("div", { class: "card" }, el("dt", {}, name), el("dd", {}, content));
  const tone = (c) => ({ Completed: "good", Withdrawn: "quiet", Refused: "busy" })[stateOf(c)] ?? (isPending(c) ? "busy" : "bad");
  const ruleTone = { ok: "good", alarm: "busy" };
  const value = (x) => x.valuePercent && ` at ${percent(x.valuePercent)}`;
  const head = [
    el("p", { class: "state" }, badge(tones[j.state], j.state), quiet(when(j.since, "for")),
      el("span", {}, j.reason && [explained(j.reason), ": "], j.text)),
    el("dl", { class: "cards" },
      card("Storage", bar(storage(a))),
      card("Flavor", i?.flavor ?? "–", i && small(`${i.vcpus ?? "?"} vCPUs, ${i.memoryGB ?? "?"} GB memory`)),
      card("The Rds requests", d.rds ? `${d.rds.volumeGB} GB` : "There is no Rds",
        d.rds && small(d.rds.flavor)),
      card("Mode", s.effectiveMode ?? a?.spec?.mode ?? "–", small(`next check ${nextCheck(d, list)}`)),
      card("Instance", i?.status ?? "–", i && small(i.id),
        manager && el("div", { class: "small" }, "managed by ", manager))),
  ];
  if (!a) return head;
  const alarms = ["storage", "cpu", "memory"].flatMap((metric) => {
    const of = (all) => all?.find((x) => x.metric === metric), r = of(s.alarms?.rules), g = of(s.intake?.signals);
    return r || g ? [[metric, r ? `${r.thresholdPercent} %` : "no rule",
      r?.state ? badge(ruleTone[r.state] ?? "bad", r.state) : "–", g ? [g.state, value(g)] : "–",
      g ? time(g.alarmTime) : "–"]] : [];
  });
  return [...head,
    el("h2", {}, "Measurements"), el("div", { id: "series" }),
    el("h2", {}, "Conditions"), table("Conditions", ["Condition", "Status", "Reason", "Message", "Since"],
      s.conditions?.map((c) => [c.type, c.status, explained(c.reason), c.message, time(c.lastTransitionTime)])),
    el("h2", {}, "Policy"), table("Policy", ["Setting", "Value"], policy(a)),
    el("h2", {}, "Changes"), table("Changes", ["Change", "State", "By", "Because of", "Requested", "Ended"],
      changesOf(a).map((c) => [step(c), badge(tone(c), stateOf(c)), c.by ?? "–",
        [c.metrics?.join(", "), value(c)], time(beginOf(c)), time(endOf(c))])),
    el("h2", {}, "Decisions"), table("Decisions", ["Metric", "Action", "Reason", "Message", "Time"],
      s.decisions?.map((x) => [x.metric, x.action, explained(x.reason), x.message,
        [time(x.lastTime ?? x.time), x.count > 1 && quiet(` (${x.count} times)`)]])),
    el("h2", {}, "Signals and alarm rules"), table("Signals and alarm rules",
      ["Metric", "Alarm at", "Rule", "Last signal", "Sent"], alarms),
    el("p", { class: "quiet small" }, "Times are in UTC. The alarm in the plots is that of the present threshold."),
  ];
}

// ---- The page

const notice = (text) => el("p", { class: "notice" }, text);
const every = 10e3, everySeries = 60e3; // milliseconds
let shown = "", plotted = "", series, readAt = 0, seriesAt = 0, paused = false, timer, visit = 0;

async function get(path) {
  const r = await fetch(path, { signal: AbortSignal.timeout(20e3) });
  const body = await r.json().catch(() => ({}));
  if (!r.ok) throw new Error(body.error ?? `the service answered with status ${r.status}`);
  return body;
}

// draw replaces the view if there is news, and then the plots. Without news it only updates the ages.
function draw(list, name) {
  const news = JSON.stringify([location.hash, list.databases]), plots = news + JSON.stringify(series);
  if (news === shown) refreshAges();
  else drawView(list, name);
  shown = news;
  if (plots !== plotted) byId("series")?.replaceChildren(...[showSeries(list.databases[0].autopilot, series)].flat());
  plotted = plots;
}

// drawView replaces the view, and keeps the focus.
function drawView(list, name) {
  const focused = document.activeElement;
  const same = { id: focused?.id, href: focused?.getAttribute("href"), state: focused?.dataset?.state };
  const at = focused?.selectionStart;
  byId("view").replaceChildren(...(name ? showDatabase(list) : showDatabases(list)).flat());
  if (focused?.isConnected) return;
  const again = [...byId("view").querySelectorAll("a, button, input")].find((e) => (same.id ? e.id === same.id
    : same.href ? e.getAttribute("href") === same.href : same.state != null && e.dataset.state === same.state));
  again?.focus({ preventScroll: true });
  if (at != null) again?.setSelectionRange?.(at, at);
}

// isSelected reports whether text of the view is selected. A new drawing would lose the selection.
const isSelected = () => !getSelection().isCollapsed && getSelection().containsNode(byId("view"), true);

// refresh reads what the address names, and draws it. What fails is a notice, and what was read before stays.
async function refresh() {
  clearTimeout(timer);
  if (isSelected()) {
    byId("read").textContent = "Waits while text is selected";
    timer = setTimeout(refresh, 1e3);
    return;
  }
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
  shown = "", plotted = "", series = undefined, seriesAt = 0;
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
