"use strict";
// Redraws the curves of a design when a slider moves. Errors are looked up in the table that was
// computed beforehand, by the same linear interpolation as in the library.
(function () {
  const data = JSON.parse(document.getElementById("design").textContent);
  const table = data.table, model = data.model, nominal = data.nominal;
  const sliders = {};
  const byId = (id) => document.getElementById(id);

  function place(axis, value) {
    if (value <= axis[0]) return 0;
    const last = axis.length - 1;
    if (value >= axis[last]) return last;
    let low = 0;
    while (axis[low + 1] < value) low += 1;
    return low + (value - axis[low]) / (axis[low + 1] - axis[low]);
  }

  function scaleOf(left, right) {
    const widest = Math.max(Math.abs(left), Math.abs(right));
    const half = Math.abs(right * right - left * left) / 8;
    let scale = 1;
    for (const coarser of [2, 4]) {
      const limit = model.blur_radius_px[coarser];
      if (widest > limit || half > model.defocus_px2 * (coarser / 2) ** 2) scale = coarser;
    }
    return scale;
  }

  // The five errors of the fit at blur radii, a cut-off and a slope of the defocus.
  function errorsAt(left, right, cutoff, slope) {
    const scale = scaleOf(left, right), one = table[scale];
    const sizes = [one.radius_px.length, one.difference_px.length, one.cutoff.length];
    const at = [
      place(one.radius_px, Math.abs(left + right) / 2),
      place(one.difference_px, Math.abs(left - right)),
      place(one.cutoff.map(Math.log), Math.log(cutoff)),
    ];
    const low = at.map((x, k) => Math.min(Math.floor(x), sizes[k] - 2));
    const cells = sizes[0] * sizes[1] * sizes[2], found = [0, 0, 0, 0, 0];
    for (let corner = 0; corner < 8; corner += 1) {
      let weight = 1, index = 0;
      for (let k = 0; k < 3; k += 1) {
        const up = (corner >> k) & 1, share = at[k] - low[k];
        weight *= up ? share : 1 - share;
        index = index * sizes[k] + low[k] + up;
      }
      if (weight === 0) continue;
      for (let n = 0; n < 5; n += 1) found[n] += weight * one.values[n * cells + index];
    }
    const contrast = data.contrast;
    return {
      scale,
      perNoise: Math.exp(found[0]) / contrast,
      perNoise2: Math.exp(found[1]) / contrast ** 2,
      misfit: Math.hypot(found[2], found[4] * slope),
    };
  }

  function optics(values) {
    const vergence = 1 / values.focus;
    const sensor = 1 / (1 / values.focal - vergence);
    const aperture = values.focal / values.fnumber / 2;
    const perDpt = sensor * aperture / data.pitch;
    const disparityDpt = sensor / data.pitch * values.baseline;
    return {
      vergence, sensor, aperture, perDpt, disparityDpt,
      cutoff: 2 * aperture * data.pitch / (data.wavelength * sensor),
      slope: 0.25 * perDpt * perDpt * Math.abs(data.apart) / disparityDpt,
    };
  }

  // Sigma of the disparity and the geometry at each depth, by the table alone.
  function curve(values) {
    const o = optics(values);
    return data.depth.map((depth) => {
      const middle = o.perDpt * (1 / depth - o.vergence), half = o.perDpt * data.apart / 2;
      const left = middle - half, right = middle + half;
      const e = errorsAt(left, right, o.cutoff, o.slope);
      const noise = Math.hypot(e.perNoise * values.noise, e.perNoise2 * values.noise ** 2);
      const px = Math.hypot(model.ratio[e.scale] * Math.hypot(noise, e.misfit), model.floor_px);
      return {
        depth, left, right, disparity: o.disparityDpt / depth,
        sigma: px * depth * depth / o.disparityDpt,
      };
    });
  }

  const start = curve(nominal);

  // The library's prediction of the nominal camera, scaled by what the table says of the change.
  function predicted(values) {
    return curve(values).map((one, k) => ({
      ...one, mae: data.mae[k] * one.sigma / start[k].sigma,
    }));
  }

  function limit(depth) { return Math.max(data.wish.error_m, data.wish.share * depth); }

  function workingRange(rows) {
    let best = null, first = null;
    for (let k = 0; k <= rows.length; k += 1) {
      const good = k < rows.length && rows[k].mae <= limit(rows[k].depth) &&
        2 * Math.max(Math.abs(rows[k].left), Math.abs(rows[k].right)) <= model.widest_px + 2;
      if (good && first === null) first = k;
      if (!good && first !== null) {
        const span = [rows[first].depth, rows[k - 1].depth];
        if (best === null || span[1] - span[0] > best[1] - best[0]) best = span;
        first = null;
      }
    }
    return best;
  }

  function box(values) {
    const o = optics(values), width = data.cols * data.pitch;
    const diameter = Math.max(data.lens_diameter || 0, 2 * o.aperture / data.clear);
    const length = data.lens_length || data.thickness * diameter;
    const span = values.baseline < width ? width : values.baseline + width;
    return [
      Math.max(values.baseline + diameter, span),
      Math.max(diameter, data.rows * data.pitch), o.sensor + length, diameter, length,
    ];
  }

  // ---- drawing ----
  const W = 640, H = 300, PAD = { l: 52, r: 12, t: 14, b: 36 };

  function line(points, style) {
    const text = points.filter((p) => isFinite(p[0]) && isFinite(p[1]))
      .map((p) => p[0].toFixed(1) + "," + p[1].toFixed(1)).join(" ");
    return `<polyline points="${text}" fill="none" ${style}/>`;
  }

  function axes(xs, ys, ticks, title) {
    let out = `<rect x="${PAD.l}" y="${PAD.t}" width="${W - PAD.l - PAD.r}" ` +
      `height="${H - PAD.t - PAD.b}" fill="none" stroke="#bbb"/>`;
    for (const t of xs.ticks) {
      out += `<line x1="${xs(t)}" x2="${xs(t)}" y1="${PAD.t}" y2="${H - PAD.b}" stroke="#eee"/>` +
        `<text x="${xs(t)}" y="${H - PAD.b + 15}" text-anchor="middle">${+t.toPrecision(3)}</text>`;
    }
    for (const t of ticks) {
      out += `<line x1="${PAD.l}" x2="${W - PAD.r}" y1="${ys(t)}" y2="${ys(t)}" stroke="#eee"/>` +
        `<text x="${PAD.l - 5}" y="${ys(t) + 4}" text-anchor="end">${+t.toPrecision(2)}</text>`;
    }
    return out + `<text x="${(W + PAD.l) / 2}" y="${H - 4}" text-anchor="middle">depth (m)</text>` +
      `<text x="${PAD.l + 6}" y="${PAD.t + 14}">${title}</text>`;
  }

  function xScale() {
    const near = data.depth[0], far = data.depth[data.depth.length - 1];
    const f = (x) => PAD.l + (x - near) / (far - near) * (W - PAD.l - PAD.r);
    f.ticks = [0, 1, 2, 3, 4, 5].map((k) => near + k * (far - near) / 5);
    return f;
  }

  function drawErrors(rows) {
    const all = rows.map((r) => r.mae).concat(data.mae, rows.map((r) => limit(r.depth)));
    const low = Math.log10(Math.min(...all) * 600), high = Math.log10(Math.max(...all) * 1800);
    const xs = xScale();
    const ys = (mm) => H - PAD.b - (Math.log10(mm) - low) / (high - low) * (H - PAD.t - PAD.b);
    const ticks = [];
    for (let d = Math.floor(low); d <= high; d += 1) {
      for (const k of [1, 3]) if (Math.log10(k * 10 ** d) > low) ticks.push(k * 10 ** d);
    }
    const to = (key) => rows.map((r) => [xs(r.depth), ys(1e3 * key(r))]);
    let out = axes(xs, ys, ticks.filter((t) => Math.log10(t) < high), "mean absolute error (mm)");
    out += line(data.depth.map((z, k) => [xs(z), ys(1e3 * data.mae[k])]),
      'stroke="#999" stroke-dasharray="4 3"');
    out += line(to((r) => limit(r.depth)), 'stroke="#2f8f4e" stroke-width="1.5"');
    out += line(to((r) => r.mae), 'stroke="#1f6fb4" stroke-width="2.5"');
    for (const m of data.measured) {
      out += `<circle cx="${xs(m[0])}" cy="${ys(1e3 * m[1])}" r="4" fill="#c8442d"/>`;
    }
    byId("errors").innerHTML = out;
  }

  function drawBlur(rows) {
    const most = Math.max(...rows.map((r) =>
      Math.max(r.disparity, 2 * Math.abs(r.left), 2 * Math.abs(r.right))));
    const xs = xScale(), ys = (px) => H - PAD.b - px / most * (H - PAD.t - PAD.b);
    const to = (key) => rows.map((r) => [xs(r.depth), ys(key(r))]);
    byId("blur").innerHTML =
      axes(xs, ys, [0, most / 4, most / 2, 3 * most / 4], "disparity and blur disks (px)") +
      line(to((r) => r.disparity), 'stroke="#444" stroke-width="2.5"') +
      line(to((r) => 2 * Math.abs(r.left)), 'stroke="#1f6fb4" stroke-width="2"') +
      line(to((r) => 2 * Math.abs(r.right)), 'stroke="#c8442d" stroke-width="2"');
  }

  // The camera from above, to scale: lenses, sensor, and the cones of light of both.
  function drawCamera(values) {
    const o = optics(values), [w, , length, diameter, thick] = box(values);
    const unit = Math.min(600 / w, 220 / (1.15 * length)), x0 = 320, y0 = 40;
    const y1 = y0 + unit * (thick / 2 + o.sensor), cols = data.cols * data.pitch;
    const isOne = values.baseline < cols;
    let out = "";
    for (const side of [-1, 1]) {
      const x = x0 + side * unit * values.baseline / 2, a = unit * o.aperture;
      const view = isOne ? cols / 2 - Math.abs(values.baseline - cols / 2) : cols;
      const half = unit * view / 2;
      out += `<path d="M${x - a},${y0} L${x - half},${y1} L${x + half},${y1} L${x + a},${y0}Z" ` +
        `fill="${side < 0 ? "#1f6fb4" : "#c8442d"}" opacity="0.13"/>` +
        `<ellipse cx="${x}" cy="${y0}" rx="${unit * diameter / 2}" ry="${unit * thick / 2}" ` +
        'fill="#e8f1fa" stroke="#456"/>';
      if (!isOne) {
        out += `<rect x="${x - unit * cols / 2}" y="${y1}" width="${unit * cols}" height="5"/>`;
      }
    }
    if (isOne) {
      out += `<rect x="${x0 - unit * cols / 2}" y="${y1}" width="${unit * cols}" height="5"/>`;
    }
    const bar = 10 ** Math.floor(Math.log10(0.6 * w));
    out += `<line x1="10" x2="${10 + unit * bar}" y1="290" y2="290" stroke="#000" ` +
      `stroke-width="2"/><text x="10" y="284">${+(1e3 * bar).toPrecision(2)} mm</text>`;
    byId("camera").innerHTML = out;
  }

  const show = {
    baseline: (x) => (1e3 * x).toPrecision(3) + " mm", focal: (x) => (1e3 * x).toPrecision(3) + " mm",
    fnumber: (x) => "f/" + x.toPrecision(3), focus: (x) => x.toPrecision(3) + " m",
    noise: (x) => (100 * x).toPrecision(2) + " %",
  };

  function current() {
    const values = {};
    for (const name of Object.keys(nominal)) {
      // A slider is 0 to 1000, even in logarithms; its middle is the design.
      const [low, high] = data.ranges[name], at = Number(sliders[name].value) / 1000;
      values[name] = at === 0.5 ? nominal[name]
        : at < 0.5 ? low * (nominal[name] / low) ** (2 * at)
          : nominal[name] * (high / nominal[name]) ** (2 * at - 1);
    }
    return values;
  }

  function redraw() {
    const values = current(), rows = predicted(values), range = workingRange(rows);
    const b = box(values), opening = 2 * optics(values).aperture / data.clear;
    for (const name of Object.keys(nominal)) byId("value-" + name).textContent = show[name](values[name]);
    drawErrors(rows);
    drawBlur(rows);
    drawCamera(values);
    const size = b.slice(0, 3).map((x) => (1e3 * x).toFixed(1)).join(" × ");
    const fits = opening <= values.baseline ? "" : " The lenses do not fit beside each other.";
    byId("told").textContent = (range === null ? "No depth is within the wish. "
      : `Within the wish from ${range[0].toPrecision(3)} to ${range[1].toPrecision(3)} m. `) +
      `Lenses and sensor take ${size} mm.` + fits;
    byId("shown").textContent = JSON.stringify({
      values, depth: data.depth, mae: rows.map((r) => r.mae), range,
    });
  }

  for (const name of Object.keys(nominal)) {
    sliders[name] = byId("slider-" + name);
    sliders[name].addEventListener("input", redraw);
  }
  byId("reset").addEventListener("click", () => {
    for (const name of Object.keys(nominal)) sliders[name].value = 500;
    redraw();
  });
  // design.html#baseline=700&noise=300 opens with sliders moved, as a person would move them.
  for (const part of location.hash.slice(1).split("&")) {
    const [name, value] = part.split("=");
    if (sliders[name]) {
      sliders[name].value = value;
      sliders[name].dispatchEvent(new Event("input"));
    }
  }
  redraw();
}());
