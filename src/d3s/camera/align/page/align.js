// Page of the alignment: one light a step, the words of the next turn, and captures.

import { Link, byId, fitted, make, on } from "../shared/page.js";

const SIGNS = { good: "✓", turn: "!", unknown: "?" };
const WORDS = { good: "good", turn: "turn it", unknown: "cannot know" };
const GRADES = { good: "good", usable: "warn", provisional: "warn", bad: "bad", none: "bad" };
const HISTORY = 8; // frames for the rate

let frame = null; // newest header with readings
let picture = null; // its image
let chosen = null; // step that was clicked; null follows the next one
let planned = []; // distances to take
let filedNow = ""; // what the list of captures shows
let typedNow = null; // distance that the server knows
const times = [];

const link = new Link({
  open: () => {
    byId("state").textContent = "connected";
    link.send({ ask: "frame" });
  },
  lost: () => {
    byId("state").textContent = "no connection: is d3s align still running?";
    byId("now").className = "unknown";
  },
  state: showState,
  frame: (header, blobs) => {
    frame = header;
    times.push(performance.now());
    if (times.length > HISTORY) times.shift();
    show(blobs[0]);
    link.send({ ask: "frame" });
    showState(header);
  },
});

async function show(blob) {
  picture = await createImageBitmap(new Blob([blob], { type: "image/jpeg" }));
  draw();
  showSteps();
  const step = frame.steps.find((one) => one.name === frame.next);
  byId("now").className = step ? step.state : "good";
  byId("now-sign").textContent = step ? signOf(step) : "✓";
  byId("now-title").textContent = step ? step.title : "All steps";
  byId("now-words").textContent = step ? joined(step.advice) : "Good. Fix everything, then calibrate.";
  const span = times[times.length - 1] - times[0];
  const rate = span > 0 ? (1000 * (times.length - 1)) / span : 0;
  byId("speed").textContent =
    `${rate.toFixed(1)} frames a second, ${Math.round(1000 * frame.seconds)} ms each, ` +
    `${frame.matches} places seen by both lenses` +
    (frame.distance_m ? `, at ${frame.distance_m.toFixed(2)} m` : "");
  document.body.dataset.frame = frame.number;
}

// Numbers stay on the line of their units.
const joined = (text) => text.replace(/(\d) (µm|px|m|%|dpt)/g, "$1\u00a0$2");

function signOf(step) {
  const turned = step.readings.find((one) => one.state === "turn");
  return (turned && turned.arrow) || SIGNS[step.state];
}

function showSteps() {
  const current = chosen || frame.next;
  if (!byId("steps").children.length) byId("steps").append(...frame.steps.map(stepButton));
  frame.steps.forEach((step, i) => {
    const button = byId("steps").children[i].firstChild;
    button.className = step.state;
    button.setAttribute("aria-pressed", String(step.name === current));
    button.setAttribute("aria-label", `${step.title}: ${WORDS[step.state]}`);
    button.children[0].textContent = signOf(step);
    button.children[1].textContent = `${i + 1}. ${step.title}`;
  });
  const readings = frame.steps.flatMap((step) => step.readings.map((one) => readingRow(one, step.name === current)));
  byId("readings").replaceChildren(tableRow("th", ["", "", "is", ["sigma", "optional"], "should be", ""]), ...readings);
}

function stepButton({ name }) {
  const button = make("button", { type: "button" }, make("span", { class: "sign" }), make("span", { class: "title" }));
  button.addEventListener("click", () => {
    chosen = chosen === name ? null : name;
    showSteps();
  });
  return make("li", {}, button);
}

function readingRow(one, isCurrent) {
  const light = make("span", { class: `light ${one.state}-light`, title: WORDS[one.state] }, one.arrow || SIGNS[one.state]);
  const words = joined([one.advice, one.note].filter(Boolean).join("; "));
  const { value, sigma, should_be } = one.shown;
  const row = tableRow("td", [
    light, one.title, [value || "–", "value number"], [sigma, "number optional"], [should_be, "number"], [words, "words"],
  ]);
  if (!isCurrent) row.className = "other";
  return row;
}

// Row of cells, each its content or [content, class].
function tableRow(tag, cells) {
  return make("tr", {}, ...cells.map((cell) => (Array.isArray(cell) ? make(tag, { class: cell[1] }, cell[0]) : make(tag, {}, cell))));
}

// Picture with fields, partition and sharpness over it.
function draw() {
  const canvas = byId("picture");
  const height = (canvas.clientWidth * frame.rows) / frame.cols;
  const [context, width] = fitted(canvas, height);
  context.drawImage(picture, 0, 0, width, height);
  const factor = width / frame.cols;
  context.lineWidth = 2;
  const size = Math.max(12, Math.min(22, width / 40));
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "top";
  frame.outlines.forEach((outline, camera) => {
    const places = outline.map(([x, y]) => [(x + 0.5) * factor, (y + 0.5) * factor]);
    path(context, [...places, places[0]], "#4da3ff");
    const name = camera === 0 ? "left lens" : "right lens";
    const x = Math.min(...places.map((place) => place[0])) + 6;
    context.fillStyle = "rgba(0, 0, 0, 0.6)";
    context.fillRect(x - 4, 4, context.measureText(name).width + 8, 1.35 * size);
    context.fillStyle = "#fff";
    context.fillText(name, x, 4 + 0.15 * size);
  });
  const column = (px) => [[(px + 0.5) * factor, 0], [(px + 0.5) * factor, height]];
  path(context, column((frame.cols - 1) / 2), "#ffd24d", [6, 6]);
  if (frame.shadow) path(context, column(frame.shadow.column_px), "#ff5ab3");
  drawSharpness(context, factor, width / 80);
}

function path(context, places, colour, dash = []) {
  context.strokeStyle = colour;
  context.setLineDash(dash);
  context.beginPath();
  for (const place of places) context.lineTo(...place);
  context.stroke();
}

// A disc for each block of both halves; `most` is the radius of the sharpest.
function drawSharpness(context, factor, most) {
  const best = Math.max(...frame.sharpness.flatMap((one) => one.slice(2)));
  if (!(best > 0) || frame.outlines.length < 2) return;
  const [left, right] = frame.outlines.map((outline) => {
    const xs = outline.map(([x]) => x);
    return (Math.min(...xs) + Math.max(...xs)) / 2;
  });
  context.fillStyle = "rgba(123, 224, 138, 0.55)";
  for (const [x, y, ...values] of frame.sharpness) {
    values.forEach((value, camera) => {
      if (!(value > 0)) return;
      context.beginPath();
      context.arc((x + camera * (right - left)) * factor, y * factor, 1 + (most * value) / best, 0, 2 * Math.PI);
      context.fill();
    });
  }
}

// State, captures and calibration ------------------------------------------------------------------

function showState({ state, problem, typed_m, captures, percent, calibrated }) {
  byId("state").textContent = state;
  byId("problem").hidden = !problem;
  byId("problem").textContent = problem;
  if (document.activeElement !== byId("distance") && typed_m !== typedNow) {
    typedNow = typed_m;
    byId("distance").value = typed_m ?? "";
  }
  byId("captures").hidden = !captures;
  if (captures) showFiled(captures);
  byId("progress").hidden = percent === null;
  if (percent !== null) byId("progress").value = percent;
  byId("calibrate").disabled = percent !== null || !captures || captures.missing > 0;
  byId("calibrate").textContent = captures?.missing ? `Calibrate: ${captures.missing} more needed` : "Calibrate";
  byId("result").hidden = !calibrated;
  if (calibrated) showResult(calibrated);
}

function showFiled({ folder, filed }) {
  byId("folder").textContent = `Folder: ${folder}`;
  const done = filed.map((one) => one.distance_m);
  planned = planned.filter((distance) => !done.includes(distance));
  const text = JSON.stringify([filed, planned]);
  if (text === filedNow) return;
  filedNow = text;
  const items = filed.map(({ name, distance_m }) => {
    const back = make("button", { type: "button", title: "out of the table; its file stays" }, "take back");
    back.addEventListener("click", () => ask({ ask: "take_back", name }, () => note(`${name} is out of the table; its file stays.`, "soft")));
    return make("li", {}, `${distance_m} m  ✓`, back);
  });
  byId("filed").replaceChildren(...items, ...planned.map((distance) => make("li", { class: "soft" }, `${distance} m`)));
  if (planned.length && !byId("capture-distance").value) byId("capture-distance").value = planned[0];
}

function showResult(found) {
  byId("verdict").className = GRADES[found.grade] || "";
  byId("verdict").textContent = `Verdict: ${found.grade}. ${found.summary} ${found.problem}`;
  byId("remarks").replaceChildren(...found.remarks.map((one) => make("li", {}, `${one.words} ${one.remedy}`)));
  const rows = found.measures.map((one) =>
    tableRow("td", [one.unit ? `${one.title} (${one.unit})` : one.title, [one.value, "number"], [one.good, "number"], [one.grade, GRADES[one.grade] || ""]]),
  );
  byId("measures").replaceChildren(tableRow("th", ["measure", "value", "good to", ""]), ...rows);
  byId("files").textContent = `${found.rig ? `Rig file: ${found.rig}` : "No rig was written"}; report: ${found.report}`;
}

function note(text, kind) {
  byId("capture-note").textContent = text;
  byId("capture-note").className = kind;
}

async function ask(message, done = () => {}) {
  try {
    const answer = await link.ask(message);
    done(answer);
    showState(answer);
  } catch (error) {
    note(error.message, "bad");
  }
}

function onSubmit(id, handler) {
  on(id, "submit", (event) => {
    event.preventDefault();
    handler();
  });
}

onSubmit("distance-form", () => {
  const typed = byId("distance").value;
  ask({ ask: "distance", distance_m: typed ? Number(typed) : null }, () => note("", ""));
});
on("forget", "click", () => ask({ ask: "forget" }));
on("list", "change", () => {
  ask({ ask: "plan", text: byId("list").value }, (answer) => {
    planned = answer.planned;
    byId("capture-distance").value = planned[0] ?? "";
    note("", "");
  });
});
onSubmit("list-form", () => {});
onSubmit("capture-form", async () => {
  const distance_m = Number(byId("capture-distance").value);
  byId("capture").disabled = true;
  note("Hold still.", "soft");
  await ask({ ask: "capture", distance_m }, ({ filed, problems }) => {
    note(filed ? `Filed as ${filed.name}.` : `Not filed. ${problems.join(" ")}`, filed ? "good" : "bad");
    // The next distance now: a picture may have told of this one before its answer came.
    if (filed) byId("capture-distance").value = planned.find((distance) => distance !== distance_m) ?? "";
  });
  byId("capture").disabled = false;
});
on("calibrate", "click", () => {
  note("Calibrating: this takes a minute or more.", "soft");
  ask({ ask: "calibrate" }, () => note("Calibrated.", "good"));
});

document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "f") byId("forget").click();
  byId("steps").children[Number(event.key) - 1]?.firstChild.click();
});
window.addEventListener("resize", () => {
  if (picture) draw();
});
