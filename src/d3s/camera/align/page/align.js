// Page of the alignment: one light a step, the words of the next turn, and captures.

import { Link, byId, fitted, make } from "../shared/page.js";

const SIGNS = { good: "✓", turn: "!", unknown: "?" };
const WORDS = { good: "good", turn: "turn it", unknown: "cannot know" };
const HISTORY = 8; // frames for the rate

let frame = null; // newest header with readings
let picture = null; // its image
let chosen = null; // step that was clicked; null follows the next one
let planned = []; // distances to take
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
  message: (header, blobs) => {
    if (header.is === "frame") {
      frame = header;
      times.push(performance.now());
      if (times.length > HISTORY) times.shift();
      show(blobs[0]);
      link.send({ ask: "frame" });
    }
    if (header.is === "frame" || header.is === "state") showState(header);
  },
});

async function show(blob) {
  picture = await createImageBitmap(new Blob([blob], { type: "image/jpeg" }));
  draw();
  showNow();
  showSteps();
  showReadings();
  const span = times[times.length - 1] - times[0];
  const rate = times.length > 1 && span > 0 ? (1000 * (times.length - 1)) / span : 0;
  byId("speed").textContent =
    `${rate.toFixed(1)} frames a second, ${Math.round(1000 * frame.seconds)} ms each, ` +
    `${frame.matches} places seen by both lenses` +
    (frame.distance_m ? `, at ${frame.distance_m.toFixed(2)} m` : "");
  document.body.dataset.frame = frame.number;
}

// Numbers stay on the line of their units.
function joined(text) {
  return text.replace(/(\d) (µm|px|m|%|dpt)/g, "$1\u00a0$2");
}

function stepNow() {
  return frame.steps.find((step) => step.name === frame.next) || null;
}

function signOf(step) {
  const turned = step.readings.find((one) => one.state === "turn");
  return turned && turned.arrow ? turned.arrow : SIGNS[step.state];
}

function showNow() {
  const step = stepNow();
  byId("now").className = step ? step.state : "good";
  byId("now-sign").textContent = step ? signOf(step) : "✓";
  byId("now-title").textContent = step ? step.title : "All steps";
  byId("now-words").textContent = step ? joined(step.advice) : "Good. Fix everything, then calibrate.";
}

function showSteps() {
  const list = byId("steps");
  const current = chosen || frame.next;
  if (list.children.length !== frame.steps.length) {
    list.replaceChildren(
      ...frame.steps.map((step) => {
        const button = make("button", { type: "button" }, make("span", { class: "sign" }), make("span", { class: "title" }));
        button.addEventListener("click", () => {
          chosen = chosen === step.name ? null : step.name;
          showSteps();
          showReadings();
        });
        return make("li", {}, button);
      }),
    );
  }
  frame.steps.forEach((step, number) => {
    const button = list.children[number].firstChild;
    button.className = step.state;
    button.setAttribute("aria-pressed", String(step.name === current));
    button.setAttribute("aria-label", `${step.title}: ${WORDS[step.state]}`);
    button.children[0].textContent = signOf(step);
    button.children[1].textContent = `${number + 1}. ${step.title}`;
  });
}

function showReadings() {
  const current = chosen || frame.next;
  const cell = (text, kind = "") => make("td", kind ? { class: kind } : {}, text);
  const rows = [
    make("tr", {}, make("th", {}, ""), make("th", {}, ""), make("th", {}, "is"), make("th", { class: "optional" }, "sigma"), make("th", {}, "should be"), make("th", {}, "")),
  ];
  for (const step of frame.steps) {
    for (const one of step.readings) {
      const light = make("span", { class: `light ${one.state}-light`, title: WORDS[one.state] }, one.arrow || SIGNS[one.state]);
      rows.push(
        make(
          "tr",
          step.name === current ? {} : { class: "other" },
          make("td", {}, light),
          cell(one.title),
          cell(one.shown.value || "–", "value number"),
          cell(one.shown.sigma, "number optional"),
          cell(one.shown.should_be, "number"),
          cell(joined([one.advice, one.note].filter(Boolean).join("; ")), "words"),
        ),
      );
    }
  }
  byId("readings").replaceChildren(...rows);
}

// Picture with fields, partition and sharpness over it.
function draw() {
  const canvas = byId("picture");
  const height = (canvas.clientWidth * frame.rows) / frame.cols;
  const [context, width] = fitted(canvas, height);
  context.drawImage(picture, 0, 0, width, height);
  const factor = width / frame.cols;
  context.lineWidth = 2;
  context.strokeStyle = "#4da3ff";
  for (const outline of frame.outlines) {
    context.beginPath();
    for (const [x, y] of outline) context.lineTo((x + 0.5) * factor, (y + 0.5) * factor);
    context.closePath();
    context.stroke();
  }
  nameLenses(context, factor);
  line(context, ((frame.cols - 1) / 2 + 0.5) * factor, height, "#ffd24d", [6, 6]);
  if (frame.shadow) line(context, (frame.shadow.column_px + 0.5) * factor, height, "#ff5ab3", []);
  drawSharpness(context, factor);
}

function nameLenses(context, factor) {
  const size = Math.max(12, Math.min(22, context.canvas.clientWidth / 40));
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "top";
  frame.outlines.forEach((outline, camera) => {
    const name = camera === 0 ? "left lens" : "right lens";
    const x = factor * Math.min(...outline.map((place) => place[0])) + 6;
    context.fillStyle = "rgba(0, 0, 0, 0.6)";
    context.fillRect(x - 4, 4, context.measureText(name).width + 8, 1.35 * size);
    context.fillStyle = "#fff";
    context.fillText(name, x, 4 + 0.15 * size);
  });
}

function line(context, x, height, colour, dash) {
  context.strokeStyle = colour;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.setLineDash([]);
}

function drawSharpness(context, factor) {
  const all = frame.sharpness.flatMap((one) => [one.left, one.right]).filter((value) => value > 0);
  if (!all.length || frame.outlines.length < 2) return;
  const most = Math.max(...all);
  const middles = frame.outlines.map((outline) => {
    const xs = outline.map(([x]) => x);
    return (Math.min(...xs) + Math.max(...xs)) / 2;
  });
  const across = middles[1] - middles[0]; // from a place in the left half to the right one
  context.fillStyle = "rgba(123, 224, 138, 0.55)";
  for (const one of frame.sharpness) {
    disc(context, one.x * factor, one.y * factor, one.left / most);
    disc(context, (one.x + across) * factor, one.y * factor, one.right / most);
  }
}

function disc(context, x, y, share) {
  if (!(share > 0)) return;
  const most = context.canvas.clientWidth / 80;
  context.beginPath();
  context.arc(x, y, 1 + most * share, 0, 2 * Math.PI);
  context.fill();
}

// State, captures and calibration ------------------------------------------------------------------

function showState(header) {
  byId("state").textContent = header.state;
  byId("problem").hidden = !header.problem;
  byId("problem").textContent = header.problem;
  const typed = byId("distance");
  if (document.activeElement !== typed && header.typed_m !== typedNow) {
    typedNow = header.typed_m;
    typed.value = typedNow === null ? "" : typedNow;
  }
  const captures = header.captures;
  byId("captures").hidden = !captures;
  if (captures) showFiled(captures);
  const percent = header.percent;
  byId("progress").hidden = percent === null;
  if (percent !== null) byId("progress").value = percent;
  byId("calibrate").disabled = percent !== null || !captures || captures.missing > 0;
  byId("calibrate").textContent =
    captures && captures.missing > 0 ? `Calibrate: ${captures.missing} more needed` : "Calibrate";
  showResult(header.calibrated);
}

let filedNow = "";
let typedNow = null; // distance that the server knows

function showFiled(captures) {
  byId("folder").textContent = `Folder: ${captures.folder}`;
  const text = JSON.stringify([captures.filed, planned]);
  if (text === filedNow) return;
  filedNow = text;
  const filed = captures.filed.map((one) => {
    const back = make("button", { type: "button", title: "out of the table; its file stays" }, "take back");
    back.addEventListener("click", () => ask({ ask: "take_back", name: one.name }, () => note(`${one.name} is out of the table; its file stays.`, "soft")));
    return make("li", {}, `${one.distance_m} m  ✓`, back);
  });
  const done = captures.filed.map((one) => one.distance_m);
  planned = planned.filter((distance) => !done.includes(distance));
  byId("filed").replaceChildren(...filed, ...planned.map((distance) => make("li", { class: "soft" }, `${distance} m`)));
  if (planned.length && !byId("capture-distance").value) byId("capture-distance").value = planned[0];
}

function showResult(found) {
  byId("result").hidden = !found;
  if (!found) return;
  const grades = { good: "good", usable: "warn", provisional: "warn", bad: "bad", none: "bad" };
  byId("verdict").className = grades[found.grade] || "";
  byId("verdict").textContent = `Verdict: ${found.grade}. ${found.summary} ${found.problem}`;
  byId("remarks").replaceChildren(...found.remarks.map((one) => make("li", {}, `${one.words} ${one.remedy}`)));
  byId("measures").replaceChildren(
    make("tr", {}, ...["measure", "value", "good to", ""].map((title) => make("th", {}, title))),
    ...found.measures.map((one) =>
      make("tr", {}, make("td", {}, one.unit ? `${one.title} (${one.unit})` : one.title), make("td", { class: "number" }, one.value), make("td", { class: "number" }, one.good), make("td", { class: grades[one.grade] || "" }, one.grade)),
    ),
  );
  byId("files").textContent = found.rig ? `Rig file: ${found.rig}; report: ${found.report}` : `No rig was written; report: ${found.report}`;
}

function note(text, kind) {
  byId("capture-note").textContent = text;
  byId("capture-note").className = kind;
}

async function ask(message, done) {
  try {
    const answer = await link.ask(message);
    done(answer);
    showState(answer);
  } catch (error) {
    note(error.message, "bad");
  }
}

byId("distance-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = byId("distance").value;
  ask({ ask: "distance", distance_m: typed ? Number(typed) : null }, () => note("", ""));
});
byId("forget").addEventListener("click", () => ask({ ask: "forget" }, () => {}));

byId("list").addEventListener("change", () => {
  try {
    planned = distances(byId("list").value);
    byId("capture-distance").value = planned.length ? planned[0] : "";
    filedNow = "";
    note("", "");
  } catch (error) {
    note(error.message, "bad");
  }
});
byId("list-form").addEventListener("submit", (event) => event.preventDefault());

// Distances as `d3s.camera.align.filing.parsed_distances` reads them.
function distances(text) {
  const found = [];
  for (const word of text.split(/[\s,;]+/).filter(Boolean)) {
    const numbers = word.split(":").map(Number);
    const [near, far, count] = numbers;
    if (numbers.some((one) => !(one > 0))) throw new Error(`${word} is no distance in metres.`);
    if (numbers.length === 1) found.push(near);
    else if (numbers.length === 3 && near < far && count >= 2 && count <= 400) {
      for (let i = 0; i < count; i += 1) {
        const vergence = 1 / near + ((1 / far - 1 / near) * i) / (count - 1);
        found.push(Math.round(1000 / vergence) / 1000);
      }
    } else throw new Error(`${word}: write nearest, farthest and how many, as 0.25:1.2:25.`);
  }
  return [...new Set(found)].sort((a, b) => a - b);
}

byId("capture-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const distance = Number(byId("capture-distance").value);
  if (!(distance > 0)) {
    note("Type the distance of the board in metres.", "bad");
    return;
  }
  byId("capture").disabled = true;
  note("Hold still.", "soft");
  ask({ ask: "capture", distance_m: distance }, (answer) => {
    if (answer.filed) {
      note(`Filed as ${answer.filed.name}.`, "good");
      byId("capture-distance").value = "";
    } else note(`Not filed. ${answer.problems.join(" ")}`, "bad");
  }).finally(() => {
    byId("capture").disabled = false;
  });
});
byId("calibrate").addEventListener("click", () => {
  note("Calibrating: this takes a minute or more.", "soft");
  ask({ ask: "calibrate" }, () => note("Calibrated.", "good"));
});

document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "f") byId("forget").click();
  const number = Number(event.key);
  if (frame && number >= 1 && number <= frame.steps.length) byId("steps").children[number - 1].firstChild.click();
});
window.addEventListener("resize", () => {
  if (picture) draw();
});
