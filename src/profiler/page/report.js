"use strict";
// Colours that colour-blind people tell apart (Okabe and Ito), with a letter each.
const CLASSES = [["compute", "#0072b2", "C"], ["transfer", "#e69f00", "T"], ["sum", "#cc79a7", "S"], ["call", "#8c96a3", "F"],
  ["input", "#009e73", "I"], ["input stage", "#5fbf9f", "P"], ["host", "#56b4e9", "H"], ["wait for memory", "#d55e00", "M"],
  ["wait", "#bbbbbb", "W"], ["memory", "#888888", "B"], ["annotation", "#f0e442", "A"], ["slice", "#6f9fd8", "L"]];
const CAUSES = { busy: [0, "C"], transfer: [1, "T"], sum: [2, "S"], "other device": [8, "D"], input: [4, "I"], host: [6, "H"],
  memory: [7, "M"], "end of step": [3, "E"], other: [10, "?"] };
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; text is never HTML.
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "text", "line", "path", "circle", "g", "title"].includes(tag);
  const e = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c !== null && c !== ""));
  return e;
}
const round = (x) => x === 0 ? "0" : Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3).replace(/\.?0+$/, "");
const us = (x) => Math.abs(x) < 1e3 ? round(x) + " µs" : Math.abs(x) < 1e6 ? round(x / 1e3) + " ms" : round(x / 1e6) + " s";
const scaled = (x, units) => { let k = 0; while (Math.abs(x) >= 1000 && k < units.length - 1) { x /= 1000; ++k; } return round(x) + " " + units[k]; };
const bytes = (x) => scaled(x, ["B", "kB", "MB", "GB", "TB"]);
const flops = (x) => scaled(x, ["", "k", "M", "G", "T"]);
const percent = (x) => round(100 * x) + " %";
const clean = (s) => s.replace(/[\u0000-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
// On a fill of the palette.
const inkOn = (k) => [0].includes(k) ? "#fff" : "#000";

async function unpacked() {
  const text = $("data").textContent;
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const all = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(all.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + length)));
  let at = 4 + length;
  const number = () => {
    let value = 0, scale = 1, byte;
    do { byte = all[at++]; value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
    return value;
  };
  for (const t of head.tracks) {
    t.begin = new Float64Array(t.count); t.end = new Float64Array(t.count);
    t.type = new Uint32Array(t.count); t.bytes = t.memory ? new Float64Array(t.count) : null;
    for (let k = 0, sum = 0; k < t.count; ++k) t.begin[k] = (sum += number()) / 10;
    for (let k = 0; k < t.count; ++k) t.end[k] = t.begin[k] + number() / 10;
    for (let k = 0; k < t.count; ++k) t.type[k] = number();
    if (t.memory) for (let k = 0; k < t.count; ++k) t.bytes[k] = number();
  }
  return head;
}

// ---- the timeline: each lane of a track is a list of events that do not overlap
const LANE = 18, GAP = 5, LEFT = 170, TOP = 22, MOST_LANES = 6;

function lanesOf(track) {
  const ends = [], of = new Uint8Array(track.count);
  for (let k = 0; k < track.count; ++k) {
    let lane = 0;
    while (lane < ends.length && ends[lane] > track.begin[k] && lane < MOST_LANES - 1) ++lane;
    ends[lane] = Math.max(ends[lane] ?? 0, track.end[k]);
    of[k] = lane;
  }
  const counts = new Array(Math.max(1, ends.length)).fill(0);
  for (const lane of of) ++counts[lane];
  const lanes = counts.map((n) => new Uint32Array(n));
  counts.fill(0);
  for (let k = 0; k < track.count; ++k) lanes[of[k]][counts[of[k]]++] = k;
  return lanes;
}

class TimelineView {
  constructor(data) {
    this.data = data; this.canvas = $("timeline"); this.ctx = this.canvas.getContext("2d");
    this.rows = []; this.found = null; this.match = -1;
    let y = TOP;
    for (const track of data.tracks.filter((t) => !t.memory)) {
      const lanes = lanesOf(track);
      this.rows.push({ track, lanes, y });
      y += lanes.length * LANE + GAP;
    }
    this.height = y + 4;
    this.first = 0;
    this.last = Math.max(1, ...data.tracks.map((t) => t.end.reduce((a, b) => Math.max(a, b), 0)));
    [this.from, this.to] = [this.first, this.last];
    this.frames = 0; this.longest = 0;
    this.listen(); this.resize();
  }
  resize() {
    const ratio = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth || 1000;
    this.canvas.style.height = this.height + "px";
    this.canvas.width = this.width * ratio; this.canvas.height = this.height * ratio;
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.redraw();
  }
  redraw() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => { this.asked = 0; this.draw(); });
  }
  show(from, to) {
    const most = this.last - this.first, span = Math.min(Math.max(to - from, 0.5), most * 1.05);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, this.first - span * 0.05), this.last + span * 0.05 - span);
    this.to = this.from + span;
    this.redraw();
  }
  zoom(factor, at = (this.from + this.to) / 2) { this.show(at - (at - this.from) * factor, at + (this.to - at) * factor); }
  pan(share) { const d = (this.to - this.from) * share; this.show(this.from + d, this.to + d); }
  timeAt(x) { return this.from + (x - LEFT) / (this.width - LEFT) * (this.to - this.from); }
  xAt(t) { return LEFT + (t - this.from) / (this.to - this.from) * (this.width - LEFT); }
  draw() {
    const began = performance.now(), c = this.ctx, style = getComputedStyle(document.body);
    const text = style.color, dim = style.getPropertyValue("--dim"), line = style.getPropertyValue("--line");
    c.fillStyle = style.getPropertyValue("--bg"); c.fillRect(0, 0, this.width, this.height);
    c.font = "11px system-ui, 'DejaVu Sans', sans-serif"; c.textBaseline = "middle";
    this.axis(c, dim, line);
    const hatch = this.hatch ??= hatched(c);
    this.drawn = 0;
    for (const row of this.rows) {
      row.lanes.forEach((lane, k) => this.drawLane(c, row, lane, row.y + k * LANE, hatch));
      c.fillStyle = style.getPropertyValue("--bg"); c.fillRect(0, row.y, LEFT - 2, row.lanes.length * LANE);
      c.fillStyle = text; c.fillText(fit(c, clean(row.track.name) + (row.track.other_clock ? " (other clock)" : ""), LEFT - 12), 6, row.y + LANE / 2);
      c.fillStyle = line; c.fillRect(0, row.y + row.lanes.length * LANE + 2, this.width, 1);
    }
    ++this.frames; this.took = performance.now() - began; this.longest = Math.max(this.longest, this.took);
  }
  axis(c, dim, line) {
    const span = this.to - this.from, rough = span / ((this.width - LEFT) / 110), power = 10 ** Math.floor(Math.log10(rough));
    const tick = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    for (let t = Math.ceil(this.from / tick) * tick; t <= this.to; t += tick) {
      const x = this.xAt(t);
      c.fillStyle = line; c.fillRect(x, TOP - 6, 1, this.height);
      c.fillStyle = dim; c.fillText(us(Math.round(t / tick) * tick), Math.min(x + 3, this.width - 48), 10);
    }
  }
  // Events of less than a pixel are drawn as one; each turn advances by at least one.
  drawLane(c, row, lane, y, hatch) {
    const { begin, end, type } = row.track, types = this.data.types;
    let k = firstEndAfter(lane, end, this.from);
    while (k < lane.length && begin[lane[k]] < this.to) {
      const e = lane[k], x = Math.max(this.xAt(begin[e]), LEFT - 1), right = Math.min(this.xAt(end[e]), this.width + 1);
      const width = right - x, kind = types[type[e]][2], hit = this.found && this.found[type[e]];
      c.globalAlpha = this.found && !hit ? 0.22 : 1;
      c.fillStyle = CLASSES[kind][1]; c.fillRect(x, y + 1, Math.max(width - (width > 3 ? 1 : 0), 1), LANE - 3);
      ++this.drawn;
      if (width > 6 && (kind === 8 || kind === 7)) { c.fillStyle = hatch; c.fillRect(x, y + 1, width - 1, LANE - 3); }
      if (width > 40) { c.fillStyle = inkOn(kind); c.fillText(fit(c, clean(types[type[e]][0]), width - 8), x + 4, y + LANE / 2); }
      ++k;
      if (width < 1) { // skip what begins and ends within this pixel
        const next = this.timeAt(Math.floor(x) + 1);
        if (k < lane.length && end[lane[k]] < next) k = Math.max(k, firstEndAfter(lane, end, next, k));
      }
    }
    c.globalAlpha = 1;
  }
  at(x, y) {
    const t = this.timeAt(x), slack = (this.to - this.from) / this.width;
    for (const { track, lanes, y: top } of this.rows) {
      const lane = lanes[Math.floor((y - top) / LANE)];
      if (y < top || !lane) continue;
      const k = firstEndAfter(lane, track.end, t - slack);
      if (k < lane.length && track.begin[lane[k]] <= t + slack) return [track, lane[k]];
    }
    return null;
  }
  search(words) {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = parts.length === 0 ? null : this.data.types.map((t) => {
      const text = (t[0] + " " + t[1] + " " + t[3] + " " + t[4]).toLowerCase();
      return parts.every((p) => text.includes(p));
    });
    this.match = -1; this.matches = [];
    if (this.found) for (const { track } of this.rows) for (let k = 0; k < track.count; ++k) if (this.found[track.type[k]]) this.matches.push([track, k]);
    $("found").textContent = this.found ? this.matches.length + " events" : "";
    this.redraw();
  }
  next(by) {
    if (!this.matches?.length) return;
    this.match = (this.match + by + this.matches.length) % this.matches.length;
    const [track, k] = this.matches[this.match], length = Math.max(track.end[k] - track.begin[k], 1);
    this.show(track.begin[k] - 3 * length, track.end[k] + 3 * length);
    $("found").textContent = `${this.match + 1} of ${this.matches.length}`;
  }
  listen() {
    const canvas = this.canvas; let drag = null;
    const place = (e) => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
    canvas.addEventListener("wheel", (e) => { e.preventDefault(); this.zoom(Math.exp(e.deltaY * 0.002), this.timeAt(place(e)[0])); }, { passive: false });
    canvas.addEventListener("pointerdown", (e) => { drag = { x: place(e)[0], from: this.from, to: this.to }; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
    canvas.addEventListener("pointermove", (e) => {
      const [x, y] = place(e);
      if (drag) { const d = (drag.x - x) / (this.width - LEFT) * (drag.to - drag.from); this.show(drag.from + d, drag.to + d); return; }
      showTip(this.data, this.at(x, y), e);
    });
    canvas.addEventListener("keydown", (e) => {
      const keys = { "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1.6), "0": () => this.show(this.first, this.last), s: () => $("step").click(),
        ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), ArrowUp: () => this.zoom(0.6), ArrowDown: () => this.zoom(1.6), Enter: () => this.next(e.shiftKey ? -1 : 1) };
      if (keys[e.key] && !e.ctrlKey && !e.metaKey) { e.preventDefault(); keys[e.key](); }
    });
    addEventListener("resize", () => this.resize());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }
}

function firstEndAfter(lane, end, t, low = 0) {
  let high = lane.length;
  while (low < high) { const middle = (low + high) >> 1; if (end[lane[middle]] < t) low = middle + 1; else high = middle; }
  return low;
}

function hatched(c) {
  const small = document.createElement("canvas"); small.width = small.height = 6;
  const s = small.getContext("2d"); s.strokeStyle = "#000a"; s.beginPath(); s.moveTo(0, 6); s.lineTo(6, 0); s.stroke();
  return c.createPattern(small, "repeat");
}

function fit(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  const letters = Math.floor(width / 6);
  return letters < 3 ? "" : text.slice(0, letters - 1) + "…";
}

function showTip(data, hit, e) {
  const tip = $("tip"); tip.hidden = !hit; if (!hit) return;
  const [track, k] = hit, [name, kind, , line, detail, size, work, predicted] = data.types[track.type[k]];
  const took = track.end[k] - track.begin[k];
  const lines = [`${kind}, ${us(took)} at ${us(track.begin[k])}` + (predicted >= 0 ? `; predicted ${us(predicted)}` : "")];
  if (size > 0) lines.push(`${bytes(size)}, ${bytes(size / Math.max(took, 1e-3) * 1e6)}/s`);
  if (work > 0) lines.push(`${flops(work)} flop, ${flops(work / Math.max(took, 1e-3) * 1e6)} flop/s`);
  if (detail) lines.push(clean(detail));
  if (line) lines.push(clean(line));
  tip.replaceChildren(make("b", {}, clean(name)), ...lines.map((l) => make("div", {}, l)));
  tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
}

// ---- tables: columns are [title, value of a row, how to print it]
function table(element, columns, rows, most = Infinity, classOf = () => "") {
  let by = -1, down = true;
  const body = make("tbody");
  const fill = (list) => body.replaceChildren(...list.slice(0, most).map((r) => make("tr", { class: classOf(r) }, ...columns.map(([, value, print]) =>
    make("td", { class: print ? "n" : value(r).length > 24 ? "name" : "" }, print ? (value(r) === null ? "–" : print(value(r))) : clean(value(r)))))));
  const sorted = (list) => by < 0 ? list : [...list].sort((a, b) => {
    const x = columns[by][1](a), y = columns[by][1](b);
    const less = x === null ? -1 : y === null ? 1 : typeof x === "string" ? x.localeCompare(y) : x - y;
    return down ? -less : less;
  });
  let shown = rows;
  const heads = columns.map(([title, , print], k) => make("th", { class: print ? "n" : "", scope: "col" }, make("button", { onclick: () => {
    down = by === k ? !down : print !== undefined; by = k;
    heads.forEach((h, m) => m === k ? h.setAttribute("aria-sort", down ? "descending" : "ascending") : h.removeAttribute("aria-sort"));
    fill(sorted(shown));
  } }, title)));
  element.replaceChildren(make("thead", {}, make("tr", {}, ...heads)), body);
  fill(rows);
  return (list) => { shown = list; fill(sorted(list)); };
}

// A bar of parts [label, share, class, letter] of one whole.
function bar(parts, label) {
  const svg = make("svg", { viewBox: "0 0 1000 20", width: "100%", height: 20, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const holder = make("div", { style: "position:relative" }, svg);
  let x = 0;
  for (const [name, share, kind, letter] of parts) {
    if (share <= 0) continue;
    svg.append(make("rect", { x: x * 1000, y: 0, width: share * 1000, height: 20, fill: CLASSES[kind][1], stroke: "var(--bg)", "stroke-width": 1 }, make("title", {}, `${name}: ${percent(share)}`)));
    if (share > 0.02) holder.append(make("span", { style: `position:absolute;pointer-events:none;overflow:hidden;white-space:nowrap;top:1px;left:${x * 100 + 0.3}%;width:${share * 100 - 0.4}%;color:${inkOn(kind)};font-size:11px;line-height:18px` },
      share > 0.12 ? `${letter} ${name} ${percent(share)}` : letter));
    x += share;
  }
  return holder;
}

function barRow(name, holder, value) { return make("div", { class: "row" }, make("span", { title: clean(name) }, clean(name)), holder, make("span", {}, value)); }

function showHeader(a) {
  $("verdict").textContent = clean(a.verdict);
  const hidden = (o) => o.total_us > 0 ? `${percent(o.hidden_us / o.total_us)} hidden` : "none";
  const figures = [["step (median)", us(a.step_us)], ["ninth tenth", us(a.step_p90_us)], ["steps", a.steps + (a.clock === "host" ? "" : ", simulated time")], ["explained", percent(a.explained)],
    ["transfers", hidden(a.transfers)], ["sums over tasks", hidden(a.sums)], ["waiting for input", us(a.input_us) + " a step"], ["events", a.events.toLocaleString("en") + (a.dropped ? `, ${a.dropped} dropped` : "")]];
  $("figures").append(...figures.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  $("advice").append(...a.advice.map((v) => make("li", {}, make("b", {}, clean(v.title)), ` – ${us(v.gain_us)} (${percent(v.share)}) of a step `, v.line ? make("code", {}, clean(v.line)) : "", make("div", { class: "dim" }, clean(v.formula)))));
  if (a.advice.length === 0) $("advice").replaceWith(make("p", {}, "Nothing to do that would save 3 % of a step."));
}

function showIdle(a) {
  for (const d of a.devices) {
    const parts = [["busy", d.busy_us], ...Object.entries(d.idle_us)].map(([cause, t]) => [cause, t / Math.max(d.window_us, 1e-9), ...CAUSES[cause]]);
    $("idle").append(barRow(d.device, bar(parts, `${clean(d.device)}: ` + parts.filter((p) => p[1] > 0).map((p) => `${p[0]} ${percent(p[1])}`).join(", ")), percent(d.busy_us / Math.max(d.window_us, 1e-9)) + " busy"));
    const edges = d.idle_edges.slice(0, 3).map((e) => `${e.edge}: ${us(e.us / a.steps)} a step`).join("; ");
    if (edges) $("idle").append(make("div", { class: "row dim" }, make("span"), make("span", {}, "waits for " + clean(edges)), make("span")));
  }
  const whole = a.path_by_device.reduce((s, p) => s + p.us, 0) || 1;
  for (const p of a.path_by_device.slice(0, 12)) {
    const kind = p.where.startsWith("transfer") ? 1 : p.where === "sum" ? 2 : p.where === "input" ? 4 : p.where.startsWith("launch") || p.where.startsWith("Python") ? 6 : 0;
    $("path").append(barRow(p.where, bar([[p.where, p.us / whole, kind, CLASSES[kind][2]]], p.where), us(p.us)));
  }
  const steps = a.path.filter((p) => p.end_us - p.begin_us > 0.01 * a.step_us);
  const first = a.path[0]?.begin_us ?? 0;
  const element = make("table");
  $("path").append(make("details", { open: "" }, make("summary", {}, `its ${steps.length} parts of more than 1 %`), make("div", { class: "scroll", style: "max-height:260px" }, element)));
  table(element, [["at", (p) => p.begin_us - first, us], ["for", (p) => p.end_us - p.begin_us, us], ["what", (p) => p.what], ["where", (p) => p.where]], steps);
}

const OP_COLUMNS = [["op", (o) => o.name], ["kind", (o) => o.kind], ["device", (o) => o.device], ["count", (o) => o.count, String], ["total", (o) => o.total_us, us], ["median", (o) => o.median_us, us],
  ["predicted", (o) => o.predicted_us, us], ["measured / predicted", (o) => o.predicted_us > 0 ? o.median_us / o.predicted_us : null, round], ["critical, a step", (o) => o.critical_us, us], ["limit", (o) => o.limit],
  ["of roof", (o) => o.roof_share || null, percent], ["bytes", (o) => o.bytes || null, bytes], ["flop", (o) => o.flops || null, flops], ["line", (o) => o.line], ["detail", (o) => o.detail]];

function showOps(a) {
  const most = 300, update = table($("ops"), OP_COLUMNS, a.ops, most);
  const filter = () => {
    const parts = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const list = a.ops.filter((o) => { const text = [o.name, o.kind, o.device, o.line, o.limit].join(" ").toLowerCase(); return parts.every((p) => text.includes(p)); });
    update(list);
    $("shown").textContent = `${Math.min(list.length, most)} of ${a.ops.length}`;
  };
  $("filter").addEventListener("input", filter); filter();
}

function showCompared(rows) {
  if (rows.length === 0) return;
  $("compared").hidden = false;
  table($("compared").querySelector("table"), [["op", (r) => r.name], ["kind", (r) => r.kind], ["device", (r) => r.device], ["count before", (r) => r.count_a, String], ["count now", (r) => r.count_b, String],
    ["median before", (r) => r.count_a ? r.median_a_us : null, us], ["median now", (r) => r.count_b ? r.median_b_us : null, us], ["", (r) => r.change], ["a step", (r) => r.per_step_us, (x) => (x > 0 ? "+" : "") + us(x)]],
  rows, 200, (r) => r.per_step_us > 0.05 ? "worse" : r.per_step_us < -0.05 ? "better" : "");
}

// ---- the graph of one step: a column per device, rows by what must be before
function showGraph(graph, by) {
  const n = graph.nodes.length; $("graphs").hidden = n === 0; if (n === 0) return;
  const devices = [...new Set(graph.nodes.map((v) => v[1]))], level = new Array(n).fill(0), used = {};
  for (const [from, to] of graph.edges) level[to] = Math.max(level[to], level[from] + 1);
  const W = 210, H = 30, place = graph.nodes.map((v, k) => { // rows of a device fill from its level on
    const d = devices.indexOf(v[1]); const row = used[d] = Math.max(level[k], (used[d] ?? -1) + 1);
    return [20 + d * (W + 70), 26 + row * H];
  });
  const slowest = Math.max(...graph.nodes.map((v) => v[2]), 1e-9), height = Math.max(...place.map((p) => p[1])) + H + 6, width = devices.length * (W + 70) + 10;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "graph of the ops of one step" });
  devices.forEach((d, k) => svg.append(make("text", { x: 20 + k * (W + 70), y: 14, "font-weight": "bold" }, clean(d))));
  for (const [from, to] of graph.edges) {
    const [x, y] = place[from], [u, v] = place[to], cut = graph.nodes[from][1] !== graph.nodes[to][1] || graph.nodes[from][4] === 1 && x !== u;
    const node = graph.nodes[graph.nodes[to][4] === 1 ? to : from];
    if (x === u && v - y > H) { svg.append(make("path", { class: "edge", d: `M${x} ${y + 11}C${x - 16} ${y + 11} ${x - 16} ${v + 11} ${u} ${v + 11}` })); continue; }
    const side = u > x ? [x + W, u] : u < x ? [x, u + W] : [x + 20, u + 20];
    svg.append(make("path", { class: cut ? "edge cut" : "edge", d: x === u ? `M${side[0]} ${y + 22}V${v}` : `M${side[0]} ${y + 11}C${(side[0] + side[1]) / 2} ${y + 11} ${(side[0] + side[1]) / 2} ${v + 11} ${side[1]} ${v + 11}` }));
    if (cut && node[5] > 0) svg.append(make("text", { x: (side[0] + side[1]) / 2, y: (y + v) / 2 + 6, "text-anchor": "middle" }, bytes(node[5])));
  }
  graph.nodes.forEach(([name, device, time, line, kind, size, detail], k) => {
    const [x, y] = place[k], colour = by === "time" ? `color-mix(in oklab, #d55e00 ${Math.round(100 * time / slowest)}%, #9ecbe8)` : kind > 0 ? CLASSES[kind][1] : ["#56b4e9", "#f0e442", "#009e73", "#cc79a7", "#bbbbbb"][devices.indexOf(device) % 5];
    const label = clean(name);
    svg.append(make("rect", { x, y, width: W, height: 22, rx: 3, fill: colour }, make("title", {}, `${label}: ${us(time)} ${size ? bytes(size) : ""} ${clean(detail)} ${clean(line)}`)),
      make("text", { class: "on", x: x + 6, y: y + 15, style: "fill:#000" }, label.length > 24 ? label.slice(0, 23) + "…" : label), make("text", { class: "on", x: x + W - 5, y: y + 15, "text-anchor": "end", style: "fill:#000" }, us(time)));
  });
  $("graph").replaceChildren(svg);
}

function showMemory(data) {
  const tracks = data.tracks.filter((t) => t.memory && t.count > 0); $("memories").hidden = tracks.length === 0;
  for (const t of tracks) {
    const last = t.begin[t.count - 1] || 1, W = 1000, H = 120; let peak = 0;
    for (let k = 1; k < t.count; ++k) if (t.bytes[k] > t.bytes[peak]) peak = k;
    const most = t.bytes[peak] || 1, highest = new Float64Array(W).fill(-1); // by pixel
    for (let k = 0; k < t.count; ++k) { const x = Math.min(W - 1, Math.floor(t.begin[k] / last * W)); highest[x] = Math.max(highest[x], t.bytes[k]); }
    let path = `M0 ${H}`, before = t.bytes[0];
    for (let x = 0; x < W; ++x) { if (highest[x] >= 0) before = highest[x]; path += `L${x} ${(H - before / most * (H - 16)).toFixed(1)}`; }
    const holder = data.types[t.type[peak]][4], x = t.begin[peak] / last * W;
    $("memory").append(make("p", {}, `${clean(t.name)}: at most ${bytes(t.bytes[peak])}` + (holder ? `, most of it: ${clean(holder)}` : "")),
      make("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: "img", "aria-label": `bytes in use on ${clean(t.name)}` }, make("path", { d: path + `L${W} ${H}Z`, fill: "#56b4e9", "fill-opacity": .5, stroke: "#0072b2" }),
        make("line", { class: "axis", x1: 0, x2: W, y1: H - .5, y2: H - .5 }), make("circle", { cx: x, cy: 16, r: 4, fill: "#d55e00" }), make("text", { x: x > W / 2 ? x - 8 : x + 8, y: 12, "text-anchor": x > W / 2 ? "end" : "start" }, "peak " + bytes(most) + " at " + us(t.begin[peak]))));
  }
}

function showRoof(a) {
  const roofs = a.roofs.filter((r) => r.flops_per_us > 0 && r.bytes_per_us > 0); $("roofs").hidden = roofs.length === 0;
  for (const roof of roofs.slice(0, 8)) {
    const ops = a.ops.filter((o) => o.device === roof.device && o.flops > 0 && o.bytes > 0 && o.median_us > 0);
    const W = 520, H = 260, L = 70, B = 34, ridge = roof.flops_per_us / roof.bytes_per_us, lg = Math.log10;
    const xs = ops.map((o) => lg(o.flops / o.bytes)), ys = ops.map((o) => lg(o.flops / o.median_us));
    const x0 = Math.min(lg(ridge) - .5, ...xs) - .3, x1 = Math.max(lg(ridge) + .5, ...xs) + .3, y1 = lg(roof.flops_per_us) + .3, y0 = Math.min(y1 - 2, ...ys) - .2;
    const X = (v) => L + (v - x0) / (x1 - x0) * (W - L - 10), Y = (v) => 10 + (y1 - v) / (y1 - y0) * (H - B - 10);
    const low = Math.max(x0, y0 - lg(roof.bytes_per_us));
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: "img", "aria-label": `roofline of ${clean(roof.device)}` },
      make("path", { d: `M${X(low)} ${Y(low + lg(roof.bytes_per_us))}L${X(lg(ridge))} ${Y(lg(roof.flops_per_us))}H${X(x1)}`, fill: "none", stroke: "var(--text)", "stroke-width": 1.5 }),
      make("path", { d: `M${L} 10V${H - B}H${W - 10}`, fill: "none", class: "axis" }), make("text", { x: (L + W) / 2, y: H - 4, "text-anchor": "middle" }, "flop per byte"));
    for (let d = Math.ceil(x0); d <= x1; ++d) svg.append(make("line", { class: "axis", x1: X(d), x2: X(d), y1: H - B, y2: H - B + 4 }), make("text", { x: X(d), y: H - B + 15, "text-anchor": "middle" }, d < 0 ? String(+(10 ** d).toPrecision(1)) : String(10 ** d)));
    for (let d = Math.ceil(y0); d <= y1; ++d) svg.append(make("line", { class: "axis", x1: L - 4, x2: L, y1: Y(d), y2: Y(d) }), make("text", { x: L - 7, y: Y(d) + 4, "text-anchor": "end" }, flops(10 ** (d + 6)) + "flop/s"));
    const marks = { compute: ["#0072b2", "C"], memory: ["#e69f00", "M"], launch: ["#cc79a7", "L"], neither: ["#888888", "n"] };
    for (const o of ops) {
      const [colour, letter] = marks[o.limit] ?? ["#888888", "?"], x = X(lg(o.flops / o.bytes)), y = Y(lg(o.flops / o.median_us));
      svg.append(make("circle", { cx: x, cy: y, r: 6, fill: colour }, make("title", {}, `${clean(o.name)}: ${flops(o.flops / o.median_us * 1e6)}flop/s, limit ${o.limit}, ${percent(o.roof_share)} of the roof`)), make("text", { class: "on", x, y: y + 3.5, "text-anchor": "middle", style: `fill:${letter === "C" ? "#fff" : "#000"};font-size:9px` }, letter));
    }
    $("roof").append(make("p", {}, `${clean(roof.device)}: best seen ${flops(roof.flops_per_us * 1e6)}flop/s and ${bytes(roof.bytes_per_us * 1e6)}/s. C: bound by compute, M: memory, L: launching, n: neither.`), svg);
  }
}

function showStages(a) {
  $("inputs").hidden = a.stages.length === 0 && a.input_us === 0;
  const whole = a.stages.reduce((s, v) => s + v.own_us, 0) || 1;
  $("stages").append(make("p", {}, `A step waits ${us(a.input_us)} for its batch.` + (a.stages.length ? ` The bottleneck is ${clean(a.stages[0].name)}.` : "")),
    ...a.stages.map((s) => barRow(s.name, bar([[s.line || s.name, s.own_us / whole, 4, "I"]], s.name), us(s.own_us / s.count) + " each")));
  $("lags").hidden = a.tasks.length === 0 && a.clocks.length === 0;
  for (const c of a.clocks.slice(1)) $("clocks").append(make("p", {}, `${clean(c.task)}: ` + (c.messages === 0 ? `no sum in common with ${clean(a.clocks[0].task)}; its times are shown as they are` :
    c.offset_us === 0 ? `the clock of ${clean(a.clocks[0].task)}` : `${us(c.offset_us)} added to its times`) + (c.messages ? `, at most ${us(c.error_us)} wrong (by ${c.messages} sums that both recorded)` : "")));
  table($("lags").querySelector("table"), [["task", (t) => t.task], ["sums", (t) => t.sums, String], ["last to arrive", (t) => t.last, String], ["waited for others", (t) => t.waited_us, us], ["others then waited (median)", (t) => t.median_lost_us, us]], a.tasks);
}

// The median step as rectangles, for paper.
function showOne(data, span) {
  const rows = data.tracks.filter((t) => !t.memory && !t.other_clock), W = 1000, svg = make("svg", { viewBox: `0 0 ${W} ${rows.length * 20 + 16}`, width: "100%" });
  let left = 2000;
  rows.forEach((t, r) => {
    svg.append(make("text", { x: 0, y: r * 20 + 13 }, clean(t.name).slice(0, 26)));
    for (let k = 0; k < t.count && left > 0; ++k) {
      if (t.end[k] < span[0] || t.begin[k] > span[1]) continue;
      const x = (v) => 160 + (Math.min(Math.max(v, span[0]), span[1]) - span[0]) / (span[1] - span[0]) * (W - 160), width = x(t.end[k]) - x(t.begin[k]), [name, , kind] = data.types[t.type[k]];
      svg.append(make("rect", { x: x(t.begin[k]), y: r * 20 + 2, width: Math.max(width, .5), height: 15, fill: CLASSES[kind][1] })); --left;
      if (width > 50) svg.append(make("text", { x: x(t.begin[k]) + 3, y: r * 20 + 13, style: `fill:${inkOn(kind)}` }, clean(name).slice(0, width / 6.5)));
    }
  });
  svg.append(make("text", { x: 160, y: rows.length * 20 + 12 }, `the median step, ${us(span[1] - span[0])}`));
  $("one").append(svg);
}

async function main() {
  const data = await unpacked(), a = data.analysis;
  showHeader(a); showIdle(a); showOps(a); showCompared(data.compared); showStages(a); showMemory(data); showRoof(a); showGraph(data.graph, "device");
  document.querySelectorAll("input[name=by]").forEach((r) => r.addEventListener("change", () => showGraph(data.graph, r.value)));
  const view = window.view = new TimelineView(data);
  const origin = data.tracks.find((t) => !t.other_clock)?.origin_us ?? 0;
  const span = a.path.length ? [a.path[0].begin_us - origin, a.path.at(-1).end_us - origin] : [view.first, view.last];
  showOne(data, span);
  const classes = new Set(data.types.map((t) => t[2]));
  $("legend").append(...CLASSES.flatMap(([name, colour, letter], k) => classes.has(k) && k !== 9 ? [make("span", {}, make("span", { class: "key", style: `background:${colour};color:${inkOn(k)}` }, letter), name)] : []));
  $("in").onclick = () => view.zoom(0.6); $("out").onclick = () => view.zoom(1.6); $("all").onclick = () => view.show(view.first, view.last);
  $("step").onclick = () => { const d = span[1] - span[0]; view.show(span[0] - d * .1, span[1] + d * .1); };
  $("search").addEventListener("input", () => view.search($("search").value));
  $("search").addEventListener("keydown", (e) => { if (e.key === "Enter") view.next(e.shiftKey ? -1 : 1); if (e.key === "Escape") { $("search").value = ""; view.search(""); view.canvas.focus(); } });
  addEventListener("keydown", (e) => { if (e.key === "/" && e.target.tagName !== "INPUT") { e.preventDefault(); $("search").focus(); } });
  document.documentElement.dataset.ready = "yes";
}
main();
