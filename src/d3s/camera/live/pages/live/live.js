// The live page: panels, clicks, settings. Every value comes from the server, which keeps the arrays
// of the frame shown; pictures are for the eye only.
import { Link, byId, length, make } from "../shared/page.js";
import { drawBar, drawHistogram, drawProfile } from "./draw.js";
import { Space } from "./space.js";

const FIRST_LARGE = "depth";
const WIDTH_STEP = 64; // widths are rounded up, so that several pages share pictures
const AS_IT_IS = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
const MOST_POINTS_WIDE = 640; // of the picture of 3D points
const MEASURE_EVERY_MS = 250;
const COLOUR_NEAREST = 0.05; // ends of the sliders of the colour scale, in metres
const COLOUR_FARTHEST = 50;
const SIGMA_LEAST = 1e-5; // ends of the slider of sigma, in metres
const SIGMA_MOST = 1;

const page = {
  frames: 0, // drawn until now
  frame: null, // header of the frame shown
  panels: new Map(), // by kind: title, colours, elements, the picture and whether it is seen
  points: [], // clicked, as [row, column]
  paused: false,
  playing: false,
  drawing: false,
  waiting: null, // message that came while another was being drawn
  measured: 0,
  abilities: {},
  fast: {},
};
window.d3s = page; // for tests and the console

const link = new Link({ message: receive, open: () => {}, lost: () => setState("the connection is lost", "bad") });

// Messages ------------------------------------------------------------------------------------------

function receive(header, blobs) {
  if (header.is === "hello") greet(header);
  else if (header.is === "frame") takeFrame(header, blobs);
  else if (header.is === "state") showState(header);
  else if (header.is === "problem") {
    showProblem(header.text);
    setTimeout(askFrame, 1000);
  }
}

function greet(header) {
  document.title = `${header.title} - d3s`;
  byId("title").textContent = header.title;
  page.abilities = header.abilities;
  page.fast = header.fast;
  page.live = header.live;
  page.frame = null;
  if (!page.panels.size) header.panels.forEach(addPanel);
  showAbilities();
  showState(header);
  askFrame();
}

function showAbilities() {
  const { record, snapshot, positions, camera } = page.abilities;
  byId("record").hidden = !record;
  byId("snapshot").hidden = !snapshot;
  byId("pause").hidden = !page.live;
  byId("losses-card").hidden = !page.live;
  byId("actions").hidden = !(page.live || snapshot);
  byId("options").hidden = page.abilities.estimate === false;
  byId("timeline").hidden = !(positions > 1);
  byId("position").max = Math.max((positions || 1) - 1, 0);
  byId("camera").hidden = !Object.keys(camera || {}).length;
  for (const [name, factor, id] of [["exposure_s", 1e3, "exposure"], ["gain", 1, "gain"]]) {
    const setting = camera && camera[name];
    byId(`${id}-row`).hidden = !setting;
    if (!setting) continue;
    byId(id).value = Number((factor * setting.value).toPrecision(5));
    if (setting.range) [byId(id).min, byId(id).max] = setting.range.map((end) => factor * end);
  }
}

function askFrame() {
  if (page.paused || document.hidden) return;
  const panels = [...page.panels.values()].filter((panel) => panel.seen).map(request);
  link.send({ ask: "frame", after: page.frame && page.frame.serial, version: page.frame && page.frame.version, panels });
}

function request(panel) {
  const width = panel.picture.clientWidth * (window.devicePixelRatio || 1);
  const wanted = { kind: panel.kind, width: Math.min(Math.max(Math.ceil(width / WIDTH_STEP) * WIDTH_STEP, 64), 4096) };
  if (panel.space) wanted.width = Math.min(wanted.width, MOST_POINTS_WIDE);
  if (panel.kind === "depth" && !byId("auto").checked) Object.assign(wanted, colourEnds());
  return wanted;
}

// A message that comes while another is drawn waits, and replaces the one that waits.
function takeFrame(header, blobs) {
  page.waiting = [header, blobs];
  if (!page.drawing) drawWaiting();
}

async function drawWaiting() {
  page.drawing = true;
  while (page.waiting) {
    const [header, blobs] = page.waiting;
    page.waiting = null;
    const isOther = !page.frame || page.frame.serial !== header.serial || page.frame.version !== header.version;
    page.frame = header;
    askFrame(); // the server makes the next one while this one is drawn
    const bitmaps = await Promise.all(blobs.map((one) => createImageBitmap(new Blob([one]), AS_IT_IS)));
    header.pictures.forEach((legend, i) => {
      const panel = page.panels.get(legend.kind);
      if (panel.bitmap) panel.bitmap.close();
      panel.bitmap = bitmaps[i];
      panel.legend = legend;
      drawPanel(panel);
    });
    page.frames += 1;
    link.send({ ask: "drawn", serial: header.serial });
    showState(header);
    showFrame(header);
    if (isOther) measureSoon();
    if (page.playing) step(1);
  }
  page.drawing = false;
}

// Panels --------------------------------------------------------------------------------------------

function addPanel({ kind, title, colours }) {
  const name = make("button", { title: `large (${page.panels.size + 1})` }, title);
  const detail = make("span", { class: "soft number" });
  const picture = make("canvas", { class: "picture", "aria-label": title, "data-kind": kind });
  const bar = make("canvas", { class: "bar", "aria-hidden": "true" });
  const legend = make("ul", { class: "legend" });
  const figure = make("figure", { class: "panel", "data-kind": kind }, make("figcaption", {}, name, detail), picture, bar, legend);
  bar.hidden = !colours.length;
  const panel = { kind, colours, figure, picture, bar, legendList: legend, detail, seen: true, bitmap: null, legend: null };
  page.panels.set(kind, panel);
  byId("panels").append(figure);
  if (kind === "points") addSpace(panel);
  else picture.addEventListener("click", (event) => clickPicture(panel, event));
  name.addEventListener("click", () => enlarge(kind));
  watcher.observe(figure);
  if (kind === FIRST_LARGE) enlarge(kind);
}

// 3D points, with a choice of their colour and a cut of sigma.
function addSpace(panel) {
  panel.space = new Space(panel.picture);
  const colour = make("select", { id: "space-colour", "aria-label": "colour of the points" });
  colour.append(...["view", "sigma", "depth"].map((name) => make("option", {}, name)));
  const cut = make("input", { id: "space-cut", type: "range", min: "0", max: "1", step: "0.01", value: "1", title: "leave out points of larger sigma" });
  const change = () => {
    const mode = colour.selectedIndex;
    const names = (page.panels.get(colour.value) || { colours: [] }).colours;
    panel.space.options = { mode, cut: Number(cut.value), colours: mode ? names.map(parts) : [] };
    panel.space.draw();
    drawSpaceBar(panel);
  };
  for (const control of [colour, cut]) control.addEventListener("input", change);
  panel.detail.replaceChildren("colour ", colour, " sigma ", cut);
}

const parts = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16) / 255);

function drawSpaceBar({ space, bar, legend }) {
  const { mode } = space.options;
  bar.hidden = !mode || !legend;
  if (bar.hidden) return;
  const [low, high] = mode > 1 ? [legend.near, legend.far] : [legend.low, legend.high];
  drawBar(bar, page.panels.get(mode > 1 ? "depth" : "sigma").colours, { low, high, unit: "m", is_log: true });
}

// Panels that are scrolled out of sight are not asked for.
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const panel = page.panels.get(target.dataset.kind);
    const appears = isIntersecting && !panel.seen;
    panel.seen = isIntersecting;
    if (appears) refresh();
  }
});

function enlarge(kind) {
  for (const panel of page.panels.values()) panel.figure.classList.toggle("large", panel.kind === kind);
  refresh();
}

// Ask for the frame shown once more, in other sizes or colours; also while paused.
let refreshing = 0;
function refresh() {
  clearTimeout(refreshing);
  refreshing = setTimeout(() => {
    if (!page.frame) return;
    page.frame.version = -1;
    if (page.paused) redrawAll();
    else askFrame();
  }, 60);
}

function redrawAll() {
  for (const panel of page.panels.values()) if (panel.bitmap) drawPanel(panel);
}

function drawPanel(panel) {
  const { picture, bitmap, legend } = panel;
  if (panel.space) {
    picture.style.aspectRatio = `${legend.width} / ${legend.height}`;
    if (!panel.space.gl) panel.detail.textContent = "this browser has no WebGL 2";
    else panel.space.show(bitmap, legend);
    drawSpaceBar(panel);
    return;
  }
  if (picture.width !== bitmap.width || picture.height !== bitmap.height) {
    picture.width = bitmap.width;
    picture.height = bitmap.height;
    picture.style.aspectRatio = `${bitmap.width} / ${bitmap.height}`;
  }
  const context = picture.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  drawPoints(context, picture);
  if (panel.colours.length) drawBar(panel.bar, panel.colours, legend);
  if (legend.flags) panel.legendList.replaceChildren(...legend.flags.map(flagItem));
  if (legend.absent) panel.detail.textContent = "not saved";
  if (panel.kind === "depth") panel.detail.textContent = `${(100 * page.frame.density).toFixed(0)} % of pixels`;
}

function flagItem({ name, colour, share }) {
  const box = make("i");
  box.style.background = colour;
  return make("li", {}, box, `${name} ${(100 * share).toFixed(1)} %`);
}

function drawPoints(context, picture) {
  const [rows, cols] = page.frame.shape;
  const places = page.points.map(([row, col]) => [((col + 0.5) * picture.width) / cols, ((row + 0.5) * picture.height) / rows]);
  const size = (8 * picture.width) / Math.max(picture.clientWidth, 1);
  for (const [colour, wide] of [["#000", 3.5], ["#fff", 1.5]]) {
    context.strokeStyle = colour;
    context.lineWidth = (wide * picture.width) / Math.max(picture.clientWidth, 1);
    context.beginPath();
    for (const [x, y] of places) {
      context.moveTo(x - size, y);
      context.lineTo(x + size, y);
      context.moveTo(x, y - size);
      context.lineTo(x, y + size);
    }
    if (places.length === 2) {
      context.moveTo(...places[0]);
      context.lineTo(...places[1]);
    }
    context.stroke();
  }
}

// Clicks --------------------------------------------------------------------------------------------

function clickPicture(panel, event) {
  if (!page.frame) return;
  const [rows, cols] = page.frame.shape;
  const box = panel.picture.getBoundingClientRect();
  const inside = (share, count) => Math.min(Math.max(Math.floor(share * count), 0), count - 1);
  const place = [inside((event.clientY - box.top) / box.height, rows), inside((event.clientX - box.left) / box.width, cols)];
  if (page.points.length === 2) page.points = [];
  page.points.push(place);
  pointsChanged();
}

function pointsChanged() {
  byId("clear").hidden = !page.points.length;
  redrawAll();
  page.measured = 0;
  measureSoon();
}

function movePoint(rows, cols) {
  if (!page.points.length || !page.frame) return;
  const point = page.points[page.points.length - 1];
  point[0] = Math.min(Math.max(point[0] + rows, 0), page.frame.shape[0] - 1);
  point[1] = Math.min(Math.max(point[1] + cols, 0), page.frame.shape[1] - 1);
  pointsChanged();
}

// Values of the frame shown at the points; at most a few times a second.
let measuring = 0;
function measureSoon() {
  clearTimeout(measuring);
  measuring = setTimeout(measure, Math.max(0, page.measured + MEASURE_EVERY_MS - performance.now()));
}

async function measure() {
  page.measured = performance.now();
  const points = page.points.map((one) => [...one]);
  if (!points.length || !page.frame) {
    byId("pixel").textContent = "Click a pixel; click a second one for distance and profile.";
    byId("distance").textContent = "";
    byId("profile").hidden = true;
    return;
  }
  const serial = page.frame.serial;
  byId("profile").hidden = points.length < 2;
  if (points.length < 2) byId("distance").textContent = "";
  try {
    const values = await Promise.all(points.map((place) => link.ask({ ask: "pixel", serial, place })));
    byId("pixel").textContent = values.map((one, i) => pixelText("AB"[i], points[i], one)).join("\n");
    byId("pixel").classList.remove("soft");
    if (points.length < 2) return;
    const [a, b] = points;
    const [between, line] = await Promise.all([
      link.ask({ ask: "distance", serial, a, b }).catch(() => ({ text: "A to B: no distance, since a point has no depth" })),
      link.ask({ ask: "profile", serial, a, b }),
    ]);
    byId("distance").textContent = between.distance_m === undefined
      ? between.text
      : `A to B: ${length(between.distance_m)} ± ${length(between.sigma_m, 2)}`;
    drawProfile(byId("profile"), line);
  } catch (error) {
    note(error.message);
  }
}

function pixelText(name, [row, col], value) {
  const grey = [value.left, value.right].map((one) => (one === null ? "none" : one.toFixed(3))).join(" | ");
  const depth = value.depth_m === null
    ? `no depth: ${value.reasons.join("; ")}`
    : `${length(value.depth_m)} ± ${length(value.sigma_m, 2)}, confidence ${value.confidence.toFixed(2)}`;
  const remark = value.depth_m !== null && value.reasons.length ? `\n${value.reasons.join("; ")}` : "";
  return `${name} (row ${row}, column ${col}): ${depth}${remark}\ngrey left | right: ${grey}`;
}

// State ---------------------------------------------------------------------------------------------

const COUNT_NAMES = {
  grabbed: "came from the camera",
  lost_by_camera: "lost by the camera",
  broken: "not whole",
  refused: "could not be read",
  out_of_order: "out of order",
  not_computed: "skipped before the estimate",
  failed: "failed in the estimate",
  computed: "depth maps",
  not_shown: "depth maps nobody saw",
  recorded: "recorded",
  not_recorded: "dropped by the recording",
};
const FAULTS = new Set(["lost_by_camera", "broken", "refused", "out_of_order", "failed", "not_recorded"]);

function setState(text, kind) {
  byId("state").textContent = text;
  byId("state").className = kind;
}

function showState(header) {
  const running = header.state === "running";
  setState(header.state, running ? "good" : header.stale ? "bad" : "soft");
  byId("panels").classList.toggle("stale", Boolean(header.stale));
  if (page.live && header.rates) {
    const latency = header.latency_s === null ? "" : `, ${(1e3 * header.latency_s).toFixed(0)} ms behind`;
    byId("speed").textContent = `${header.rates.computed.toFixed(1)} depth maps a second of ${header.rates.grabbed.toFixed(1)} frames${latency}`;
    byId("losses").replaceChildren(
      ...Object.entries(header.counts)
        .filter(([name, count]) => count || !FAULTS.has(name))
        .flatMap(([name, count]) => {
          const mark = FAULTS.has(name) && count ? { class: "bad" } : {};
          return [make("dt", mark, COUNT_NAMES[name]), make("dd", mark, String(count))];
        }),
    );
  }
  press("record", Boolean(header.recording), header.recording ? "Stop recording" : "Record");
  if (header.settings) showSettings(header.settings);
}

function showFrame(header) {
  showProblem("");
  byId("light-card").hidden = !header.light;
  if (header.light) {
    drawHistogram(byId("histogram"), header.light);
    const percent = (share) => `${(100 * share).toFixed(2)} %`;
    byId("clipping").textContent = `${percent(header.light.white)} white, ${percent(header.light.black)} black`;
    byId("clipping").className = header.light.white > 1e-3 ? "number bad" : "number soft";
  }
  byId("warnings").replaceChildren(...header.warnings.slice(0, 5).map((text) => make("li", {}, text)));
  if (header.position !== null && page.abilities.positions > 1) {
    if (document.activeElement !== byId("position") || page.playing) byId("position").value = header.position;
    const time = header.time_s === null ? "" : `, ${header.time_s.toFixed(2)} s`;
    byId("place").textContent = `${header.position + 1} of ${page.abilities.positions}: ${header.name || header.number}${time}`;
  }
}

function showProblem(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

function note(text) {
  byId("note").textContent = text;
}

function press(id, isPressed, text) {
  byId(id).setAttribute("aria-pressed", String(isPressed));
  if (text) byId(id).textContent = text;
}

// Settings ------------------------------------------------------------------------------------------

const sliderSigma = () => (Number(byId("sigma").value) >= 100 ? null : SIGMA_LEAST * (SIGMA_MOST / SIGMA_LEAST) ** (byId("sigma").value / 100));
const sliderColour = (id) => COLOUR_NEAREST * (COLOUR_FARTHEST / COLOUR_NEAREST) ** (byId(id).value / 100);

function colourEnds() {
  const [near, far] = [sliderColour("near"), sliderColour("far")];
  return { low: Math.min(near, far), high: Math.max(near, far) };
}

// Values of the server, unless the person is moving the control.
function showSettings(settings) {
  const isFree = (id) => document.activeElement !== byId(id);
  const range = settings.options.depth_range_m || [null, null];
  if (isFree("confidence")) byId("confidence").value = settings.min_confidence ?? 0;
  if (isFree("sigma"))
    byId("sigma").value = settings.max_sigma_m === null ? 100 : (100 * Math.log(settings.max_sigma_m / SIGMA_LEAST)) / Math.log(SIGMA_MOST / SIGMA_LEAST);
  byId("carried").checked = settings.carried;
  byId("fast").checked = Object.entries(page.fast).every(([name, value]) => settings.options[name] === value);
  if (isFree("nearest")) byId("nearest").value = range[0] ?? "";
  if (isFree("farthest")) byId("farthest").value = range[1] ?? "";
  showSliders();
}

function showSliders() {
  const confidence = Number(byId("confidence").value);
  byId("confidence-value").textContent = confidence ? confidence.toFixed(2) : "any";
  byId("sigma-value").textContent = sliderSigma() === null ? "any" : length(sliderSigma(), 2);
  for (const id of ["near", "far"]) {
    byId(`${id}-value`).textContent = byId("auto").checked ? "" : length(sliderColour(id), 3);
    byId(id).disabled = byId("auto").checked;
  }
}

async function change(changes) {
  try {
    await link.ask({ ask: "set", changes });
    note("");
  } catch (error) {
    note(error.message);
  }
}

async function act(message) {
  try {
    const answer = await link.ask(message);
    if (answer.text) note(answer.text);
    return answer;
  } catch (error) {
    note(error.message);
    return null;
  }
}

function setFast(isFast) {
  const options = Object.fromEntries(Object.entries(page.fast).map(([name, value]) => [name, isFast ? value : null]));
  change({ options });
}

function setRange() {
  const [near, far] = [byId("nearest").value, byId("farthest").value];
  if (!near !== !far) return; // the other end is still to come
  change({ options: { depth_range_m: near && far ? [Number(near), Number(far)] : null } });
}

function pause(isPaused) {
  page.paused = isPaused;
  press("pause", isPaused, isPaused ? "Go on" : "Pause");
  if (!isPaused) askFrame();
}

const record = () => act({ ask: "record", on: byId("record").getAttribute("aria-pressed") !== "true" });
const snapshot = () => page.frame && act({ ask: "snapshot", serial: page.frame.serial });

// Time line -----------------------------------------------------------------------------------------

const seek = (position) => act({ ask: "seek", position });

function step(by) {
  const last = page.abilities.positions - 1;
  const next = Math.min(Math.max((page.frame.position ?? 0) + by, 0), last);
  if (next === page.frame.position) play(false);
  else seek(next);
}

function play(isPlaying) {
  page.playing = isPlaying;
  press("play", isPlaying, isPlaying ? "Stop" : "Play");
  if (isPlaying) step(1);
}

// Controls and keys ---------------------------------------------------------------------------------

function on(id, event, handler) {
  byId(id).addEventListener(event, handler);
}

on("pause", "click", () => pause(!page.paused));
on("record", "click", record);
on("snapshot", "click", snapshot);
on("clear", "click", () => { page.points = []; pointsChanged(); });
on("confidence", "input", () => { showSliders(); change({ min_confidence: Number(byId("confidence").value) || null }); });
on("sigma", "input", () => { showSliders(); change({ max_sigma_m: sliderSigma() }); });
on("carried", "change", () => change({ carried: byId("carried").checked }));
for (const id of ["auto", "near", "far"]) on(id, "input", () => { showSliders(); refresh(); });
on("fast", "change", () => setFast(byId("fast").checked));
for (const id of ["nearest", "farthest"]) on(id, "change", setRange);
on("exposure", "change", () => change({ exposure_s: Number(byId("exposure").value) / 1e3 }));
on("gain", "change", () => change({ gain: Number(byId("gain").value) }));
on("position", "input", () => seek(Number(byId("position").value)));
on("before", "click", () => step(-1));
on("after", "click", () => step(1));
on("play", "click", () => play(!page.playing));
window.addEventListener("resize", refresh);
document.addEventListener("visibilitychange", () => { if (!document.hidden) askFrame(); });

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT"].includes(event.target.tagName) && event.target.type !== "checkbox";
  const pressing = event.target.tagName === "BUTTON" && (event.key === " " || event.key === "Enter");
  if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey) return;
  const kinds = [...page.panels.keys()];
  const key = event.key.toLowerCase();
  if (event.key in ARROWS) {
    const by = event.shiftKey ? 10 : 1;
    movePoint(...ARROWS[event.key].map((one) => by * one));
  } else if (kinds[Number(key) - 1]) enlarge(kinds[Number(key) - 1]);
  else if (key === " ") page.live ? pause(!page.paused) : play(!page.playing);
  else if (key === "r" && page.abilities.record) record();
  else if (key === "s" && page.abilities.snapshot) snapshot();
  else if (key === "f") setFast(!byId("fast").checked);
  else if (key === "c") { page.points = []; pointsChanged(); }
  else if (key === "," && page.abilities.positions > 1) step(-1);
  else if (key === "." && page.abilities.positions > 1) step(1);
  else return;
  event.preventDefault();
});

showSliders();
