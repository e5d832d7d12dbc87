// Drawing of colour bars, the histogram and profiles.
import { colourOf, fitted, length } from "../shared/page.js";

const BAR_HEIGHT = 34;
const STRIPE_HEIGHT = 10;
const HISTOGRAM_HEIGHT = 60;
const PROFILE_HEIGHT = 130;

// Colour bar with numbers and unit; `scale` has low, high, unit, is_log.
export function drawBar(canvas, colours, scale) {
  const [context, width] = fitted(canvas, BAR_HEIGHT);
  const gradient = context.createLinearGradient(0, 0, width, 0);
  colours.forEach((colour, i) => gradient.addColorStop(i / (colours.length - 1), colour));
  context.fillStyle = gradient;
  context.fillRect(0, 3, width, STRIPE_HEIGHT);
  context.fillStyle = colourOf("text");
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  const factor = scale.unit === "m" && scale.high < 0.1 ? 1e3 : 1;
  const unit = factor === 1 ? scale.unit : "mm";
  const unitWidth = context.measureText(unit).width;
  context.textAlign = "right";
  context.fillText(unit, width - 1, 18);
  let free = 0;
  for (const value of ticks(factor * scale.low, factor * scale.high, scale.is_log)) {
    const share = place(value, factor * scale.low, factor * scale.high, scale.is_log);
    const text = String(Number(value.toPrecision(3)));
    const half = context.measureText(text).width / 2;
    const x = Math.min(Math.max(share * width, half), width - half);
    if (x - half < free || x + half > width - unitWidth - 8) continue;
    context.fillRect(share * width - 0.5, 3 + STRIPE_HEIGHT, 1, 3);
    context.textAlign = "center";
    context.fillText(text, x, 18);
    free = x + half + 8;
  }
}

function place(value, low, high, isLog) {
  return isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

// Round numbers from low to high; at least three, round or not.
function ticks(low, high, isLog) {
  const found = [];
  if (isLog && high > 4 * low) {
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const digit of [1, 2, 3, 5, 7]) found.push(digit * 10 ** power);
  } else {
    const step = 10 ** Math.floor(Math.log10((high - low) / 2));
    const wide = [1, 2, 5].map((by) => by * step).find((one) => (high - low) / one <= 6) || 10 * step;
    for (let value = Math.ceil(low / wide) * wide; value <= high + 1e-9; value += wide) found.push(value);
  }
  const inside = found.filter((value) => value >= low && value <= high);
  if (inside.length >= 3) return inside;
  return [0, 1, 2, 3].map((i) => (isLog ? low * (high / low) ** (i / 3) : low + ((high - low) * i) / 3));
}

// Bars on a square-root scale, so that few pixels are seen too; both ends red if pixels are clipped.
export function drawHistogram(canvas, light) {
  const [context, width] = fitted(canvas, HISTOGRAM_HEIGHT);
  const highest = Math.sqrt(Math.max(...light.histogram, 1e-9));
  const wide = width / light.histogram.length;
  light.histogram.forEach((share, i) => {
    const clipped = (i === 0 && light.black > 1e-3) || (i === light.histogram.length - 1 && light.white > 1e-3);
    context.fillStyle = colourOf(clipped ? "bad" : "accent");
    const high = (Math.sqrt(share) / highest) * (HISTOGRAM_HEIGHT - 2);
    context.fillRect(i * wide, HISTOGRAM_HEIGHT - high, Math.max(wide - 1, 1), high);
  });
  context.fillStyle = colourOf("soft");
  context.fillRect(0, HISTOGRAM_HEIGHT - 1, width, 1);
}

// Depth along a line, with a band of one sigma; gaps where there is no depth.
export function drawProfile(canvas, profile) {
  const [context, width] = fitted(canvas, PROFILE_HEIGHT);
  const known = profile.depth_m.map((depth, i) => [depth, profile.sigma_m[i]]).filter(([d]) => d !== null);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colourOf("soft");
  if (!known.length) {
    context.fillText("no depth along this line", 4, 20);
    return;
  }
  let low = Math.min(...known.map(([d, s]) => d - s));
  let high = Math.max(...known.map(([d, s]) => d + s));
  const room = Math.max(0.12 * (high - low), 1e-3 * high);
  [low, high] = [low - room, high + room];
  const bottom = PROFILE_HEIGHT - 16;
  const x = (i) => (i / Math.max(profile.depth_m.length - 1, 1)) * width;
  const y = (depth) => bottom - ((depth - low) / (high - low)) * (bottom - 2);
  const step = Math.max(width / profile.depth_m.length, 1);
  profile.depth_m.forEach((depth, i) => {
    if (depth === null) return;
    const sigma = profile.sigma_m[i];
    context.globalAlpha = 0.3;
    context.fillStyle = colourOf("accent");
    context.fillRect(x(i) - step / 2, y(depth + sigma), step, Math.max(y(depth - sigma) - y(depth + sigma), 1));
    context.globalAlpha = 1;
    context.fillRect(x(i) - step / 2, y(depth) - 1, step, 2);
  });
  context.fillStyle = colourOf("text");
  context.textBaseline = "top";
  context.textAlign = "left";
  context.fillText(length(high), 2, 2);
  context.textBaseline = "bottom";
  context.fillText(length(low), 2, bottom);
  context.fillStyle = colourOf("soft");
  context.fillText("A", 2, PROFILE_HEIGHT);
  context.textAlign = "right";
  context.fillText("B", width - 2, PROFILE_HEIGHT);
  context.textAlign = "center";
  context.fillText(`${profile.length_px.toFixed(0)} px`, width / 2, PROFILE_HEIGHT);
}
