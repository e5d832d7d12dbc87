// The live page: panels, clicks, settings. Every value comes from the server, which keeps the arrays
// of the frame shown; pictures are for the eye only.
import { Link, byId, clamp, length, make, on } from "../shared/page.js";
import { drawBar, drawHistogram, drawProfile } from "./draw.js";
import { Space } from "./space.js";

const FIRST_LARGE = "depth";
const WIDTH_STEP = 64; // widths are rounded up, so that several pages share pictures
const AS_IT_IS = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
const MOST_POINTS_WIDE = 640; // of the picture of 3D points
const MEASURE_EVERY_MS = 250;
const COLOUR_ENDS = [0.05, 50]; // of the sliders of the colour scale, in metres
const SIGMA_ENDS = [1e-5, 1]; // of the slider of sigma, in metres
const HELP = "Click a pixel; click a second one for distance and profile.";

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

const link = new Link({
  hello: greet,
  frame: takeFrame,
  state: showState,
  problem: (header) => { showProblem(header.text); setTimeout(askFrame, 1000); },
  lost: () => setState("the connection is lost", "bad"),
});

function greet(header) {
  document.title = `${header.title} - d3s`;
  byId("title").textContent = header.title;
  Object.assign(page, { abilities: header.abilities, fast: header.fast, live: header.live, frame: null });
  if (!page.panels.size) header.panels.forEach(addPanel);
  const { record, snapshot, positions, camera, estimate } = page.abilities;
  const shown = {
    record, snapshot, pause: page.live, "losses-card": page.live, actions: page.live || snapshot,
    options: estimate, timeline: positions > 1, camera: Object.keys(camera).length,
    "exposure-row": camera.exposure_s, "gain-row": camera.gain,
  };
  for (const [id, isShown] of Object.entries(shown)) byId(id).hidden = !isShown;
  byId("position").max = Math.max((positions || 1) - 1, 0);
  for (const [name, factor, id] of [["exposure_s", 1e3, "exposure"], ["gain", 1, "gain"]]) {
    if (!camera[name]) continue;
    byId(id).value = Number((factor * camera[name].value).toPrecision(5));
    if (camera[name].range) [byId(id).min, byId(id).max] = camera[name].range.map((end) => factor * end);
  }
  showState(header);
  askFrame();
}

function askFrame() {
  if (page.paused || document.hidden) return;
  const panels = [...page.panels.values()].filter((panel) => panel.seen).map(request);
  link.send({ ask: "frame", after: page.frame && page.frame.serial, version: page.frame && page.frame.version, panels });
}

function request({ kind, picture, space }) {
  const width = picture.clientWidth * (window.devicePixelRatio || 1);
  const wanted = { kind, width: clamp(Math.ceil(width / WIDTH_STEP) * WIDTH_STEP, 64, space ? MOST_POINTS_WIDE : 4096) };
  if (kind === "depth" && !byId("auto").checked) {
    const ends = ["near", "far"].map(sliderColour);
    Object.assign(wanted, { low: Math.min(...ends), high: Math.max(...ends) });
  }
  return wanted;
}

// A message that comes while another is drawn waits, and replaces the one that waits.
async function takeFrame(...message) {
  page.waiting = message;
  if (page.drawing) return;
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
      Object.assign(panel, { bitmap: bitmaps[i], legend });
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
  const panel = {
    kind, colours, seen: true, bitmap: null, legend: null,
    picture: make("canvas", { class: "picture", "aria-label": title, "data-kind": kind }),
    bar: make("canvas", { class: "bar", "aria-hidden": "true" }),
    list: make("ul", { class: "legend" }),
    detail: make("span", { class: "soft number" }),
  };
  const parts = [make("figcaption", {}, name, panel.detail), panel.picture, panel.bar, panel.list];
  panel.figure = make("figure", { class: "panel", "data-kind": kind }, ...parts);
  panel.bar.hidden = !colours.length;
  page.panels.set(kind, panel);
  byId("panels").append(panel.figure);
  if (kind === "points") addSpace(panel);
  else panel.picture.addEventListener("click", (event) => clickPicture(panel, event));
  name.addEventListener("click", () => enlarge(kind));
  watcher.observe(panel.figure);
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
    const colours = mode ? page.panels.get(colour.value).colours.map(rgb) : [];
    panel.space.options = { mode, cut: Number(cut.value), colours };
    panel.space.draw();
    drawSpaceBar(panel);
  };
  for (const control of [colour, cut]) control.addEventListener("input", change);
  panel.detail.replaceChildren("colour ", colour, " sigma ", cut);
}

const rgb = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16) / 255);

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
  const { picture, bitmap, legend, space, detail } = panel;
  picture.style.aspectRatio = `${legend.width} / ${legend.height}`;
  if (space) {
    if (!space.gl) detail.textContent = "this browser has no WebGL 2";
    else space.show(bitmap, legend);
    drawSpaceBar(panel);
    return;
  }
  if (picture.width !== bitmap.width || picture.height !== bitmap.height) [picture.width, picture.height] = [bitmap.width, bitmap.height];
  const context = picture.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  drawPoints(context, picture);
  if (panel.colours.length) drawBar(panel.bar, panel.colours, legend);
  if (legend.flags) panel.list.replaceChildren(...legend.flags.map(flagItem));
  if (legend.absent) detail.textContent = "not saved";
  if (panel.kind === "depth") detail.textContent = `${(100 * page.frame.density).toFixed(0)} % of pixels`;
}

function flagItem({ name, colour, share }) {
  const box = make("i");
  box.style.background = colour;
  return make("li", {}, box, `${name} ${(100 * share).toFixed(1)} %`);
}

function drawPoints(context, picture) {
  const [rows, cols] = page.frame.shape;
  const places = page.points.map(([row, col]) => [((col + 0.5) * picture.width) / cols, ((row + 0.5) * picture.height) / rows]);
  const unit = picture.width / Math.max(picture.clientWidth, 1);
  const size = 8 * unit;
  for (const [colour, wide] of [["#000", 3.5], ["#fff", 1.5]]) {
    context.strokeStyle = colour;
    context.lineWidth = wide * unit;
    context.beginPath();
    const lines = places.flatMap(([x, y]) => [[[x - size, y], [x + size, y]], [[x, y - size], [x, y + size]]]);
    if (places.length === 2) lines.push(places);
    for (const [from, to] of lines) { context.moveTo(...from); context.lineTo(...to); }
    context.stroke();
  }
}

// Clicks --------------------------------------------------------------------------------------------

function clickPicture(panel, event) {
  if (!page.frame) return;
  const [rows, cols] = page.frame.shape;
  const box = panel.picture.getBoundingClientRect();
  const inside = (share, count) => clamp(Math.floor(share * count), 0, count - 1);
  const place = [inside((event.clientY - box.top) / box.height, rows), inside((event.clientX - box.left) / box.width, cols)];
  setPoints([...(page.points.length === 2 ? [] : page.points), place]);
}

function setPoints(points) {
  page.points = points;
  byId("clear").hidden = !points.length;
  redrawAll();
  page.measured = 0;
  measureSoon();
}

function movePoint(by) {
  if (!page.points.length || !page.frame) return;
  const last = page.points.pop();
  setPoints([...page.points, last.map((one, i) => clamp(one + by[i], 0, page.frame.shape[i] - 1))]);
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
  byId("profile").hidden = points.length < 2;
  if (points.length < 2) byId("distance").textContent = "";
  if (!points.length || !page.frame) {
    byId("pixel").textContent = HELP;
    return;
  }
  const { serial } = page.frame;
  try {
    const values = await Promise.all(points.map((place) => link.ask({ ask: "pixel", serial, place })));
    byId("pixel").textContent = values.map((one, i) => pixelText("AB"[i], points[i], one)).join("\n");
    byId("pixel").classList.remove("soft");
    if (points.length < 2) return;
    const [a, b] = points;
    const [between, line] = await Promise.all([
      link.ask({ ask: "distance", serial, a, b }).catch(() => null),
      link.ask({ ask: "profile", serial, a, b }),
    ]);
    const words = between ? `${length(between.distance_m)} ± ${length(between.sigma_m, 2)}` : "no distance, since a point has no depth";
    byId("distance").textContent = `A to B: ${words}`;
    drawProfile(byId("profile"), line);
  } catch (error) {
    note(error.message);
  }
}

function pixelText(name, [row, col], value) {
  const grey = [value.left, value.right].map((one) => (one === null ? "none" : one.toFixed(3))).join(" | ");
  const why = value.reasons.join("; ");
  const depth = value.depth_m === null
    ? `no depth: ${why}`
    : `${length(value.depth_m)} ± ${length(value.sigma_m, 2)}, confidence ${value.confidence.toFixed(2)}${why && "\n"}${why}`;
  return `${name} (row ${row}, column ${col}): ${depth}\ngrey left | right: ${grey}`;
}

// State ---------------------------------------------------------------------------------------------

// Words of each counter, and whether it counts a fault.
const COUNTS = {
  grabbed: ["came from the camera"],
  lost_by_camera: ["lost by the camera", true],
  broken: ["not whole", true],
  refused: ["could not be read", true],
  out_of_order: ["out of order", true],
  not_computed: ["skipped before the estimate"],
  failed: ["failed in the estimate", true],
  computed: ["depth maps"],
  not_shown: ["depth maps nobody saw"],
  recorded: ["recorded"],
  not_recorded: ["dropped by the recording", true],
};

function setState(text, kind) {
  byId("state").textContent = text;
  byId("state").className = kind;
}

function showState(header) {
  setState(header.state, header.state === "running" ? "good" : header.stale ? "bad" : "soft");
  byId("panels").classList.toggle("stale", Boolean(header.stale));
  if (page.live && header.rates) {
    const latency = header.latency_s === null ? "" : `, ${(1e3 * header.latency_s).toFixed(0)} ms behind`;
    byId("speed").textContent = `${header.rates.computed.toFixed(1)} depth maps a second of ${header.rates.grabbed.toFixed(1)} frames${latency}`;
    const rows = Object.entries(header.counts).flatMap(([name, count]) => {
      const [words, isFault] = COUNTS[name];
      if (isFault && !count) return [];
      const mark = isFault ? { class: "bad" } : {};
      return [make("dt", mark, words), make("dd", mark, String(count))];
    });
    byId("losses").replaceChildren(...rows);
  }
  press("record", header.recording, header.recording ? "Stop recording" : "Record");
  showSettings(header.settings);
}

function showFrame(header) {
  showProblem("");
  byId("light-card").hidden = !header.light;
  if (header.light) {
    const { white, black } = header.light;
    drawHistogram(byId("histogram"), header.light);
    byId("clipping").textContent = `${(100 * white).toFixed(2)} % white, ${(100 * black).toFixed(2)} % black`;
    byId("clipping").className = white > 1e-3 ? "number bad" : "number soft";
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
  byId(id).setAttribute("aria-pressed", String(Boolean(isPressed)));
  byId(id).textContent = text;
}

// Settings ------------------------------------------------------------------------------------------

const onLog = (share, [low, high]) => low * (high / low) ** share;
const sliderSigma = () => (Number(byId("sigma").value) >= 100 ? null : onLog(byId("sigma").value / 100, SIGMA_ENDS));
const sliderColour = (id) => onLog(byId(id).value / 100, COLOUR_ENDS);

// Values of the server, unless the person is moving the control.
function showSettings({ options, min_confidence, max_sigma_m, carried }) {
  const range = options.depth_range_m || ["", ""];
  const [low, high] = SIGMA_ENDS;
  const values = {
    confidence: min_confidence ?? 0,
    sigma: max_sigma_m === null ? 100 : (100 * Math.log(max_sigma_m / low)) / Math.log(high / low),
    nearest: range[0],
    farthest: range[1],
  };
  for (const [id, value] of Object.entries(values)) if (document.activeElement !== byId(id)) byId(id).value = value;
  byId("carried").checked = carried;
  byId("fast").checked = Object.entries(page.fast).every(([name, value]) => options[name] === value);
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

async function act(message) {
  try {
    const { text } = await link.ask(message);
    if (text || message.ask === "set") note(text || "");
  } catch (error) {
    note(error.message);
  }
}

const change = (changes) => act({ ask: "set", changes });

function setFast(isFast) {
  change({ options: Object.fromEntries(Object.entries(page.fast).map(([name, value]) => [name, isFast ? value : null])) });
}

function setRange() {
  const ends = [byId("nearest").value, byId("farthest").value];
  if (!ends[0] === !ends[1]) change({ options: { depth_range_m: ends[0] ? ends.map(Number) : null } }); // else one end is still to come
}

function pause(isPaused) {
  page.paused = isPaused;
  press("pause", isPaused, isPaused ? "Go on" : "Pause");
  if (!isPaused) askFrame();
}

const record = () => act({ ask: "record", on: byId("record").getAttribute("aria-pressed") !== "true" });
const snapshot = () => page.frame && act({ ask: "snapshot", serial: page.frame.serial });
const seek = (position) => act({ ask: "seek", position });

function step(by) {
  const next = clamp((page.frame.position ?? 0) + by, 0, page.abilities.positions - 1);
  if (next === page.frame.position) play(false);
  else seek(next);
}

function play(isPlaying) {
  page.playing = isPlaying;
  press("play", isPlaying, isPlaying ? "Stop" : "Play");
  if (isPlaying) step(1);
}

// Controls and keys ---------------------------------------------------------------------------------

const number = (id) => Number(byId(id).value);
on("pause", "click", () => pause(!page.paused));
on("record", "click", record);
on("snapshot", "click", snapshot);
on("clear", "click", () => setPoints([]));
on("confidence", "input", () => { showSliders(); change({ min_confidence: number("confidence") || null }); });
on("sigma", "input", () => { showSliders(); change({ max_sigma_m: sliderSigma() }); });
on("carried", "change", () => change({ carried: byId("carried").checked }));
for (const id of ["auto", "near", "far"]) on(id, "input", () => { showSliders(); refresh(); });
on("fast", "change", () => setFast(byId("fast").checked));
for (const id of ["nearest", "farthest"]) on(id, "change", setRange);
on("exposure", "change", () => change({ exposure_s: number("exposure") / 1e3 }));
on("gain", "change", () => change({ gain: number("gain") }));
on("position", "input", () => seek(number("position")));
on("before", "click", () => step(-1));
on("after", "click", () => step(1));
on("play", "click", () => play(!page.playing));
window.addEventListener("resize", refresh);
document.addEventListener("visibilitychange", () => { if (!document.hidden) askFrame(); });

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const KEYS = {
  " ": () => (page.live ? pause(!page.paused) : play(!page.playing)),
  r: () => page.abilities.record && record(),
  s: () => page.abilities.snapshot && snapshot(),
  f: () => setFast(!byId("fast").checked),
  c: () => setPoints([]),
  ",": () => page.abilities.positions > 1 && step(-1),
  ".": () => page.abilities.positions > 1 && step(1),
};

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  const typing = ["INPUT", "SELECT"].includes(target.tagName) && target.type !== "checkbox";
  const pressing = target.tagName === "BUTTON" && (key === " " || key === "Enter");
  if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey) return;
  const kind = [...page.panels.keys()][Number(key) - 1];
  if (ARROWS[key]) movePoint(ARROWS[key].map((one) => (event.shiftKey ? 10 : 1) * one));
  else if (kind) enlarge(kind);
  else if (KEYS[key.toLowerCase()]) KEYS[key.toLowerCase()]();
  else return;
  event.preventDefault();
});

showSliders();
