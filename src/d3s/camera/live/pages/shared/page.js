// Connection of a page to its server, which all pages share.
//
//   const link = new Link({ frame: (header, blobs) => ..., state: ..., lost: () => ... });
//   link.send({ ask: "frame" });            // no answer is expected
//   const answer = await link.ask({ ask: "pixel", ... });
//
// Messages of the server are JSON, or a header of JSON with pictures behind it; `is` names the
// handler. Answers have the id of their question. A lost connection is opened again every second.

const RETRY_MS = 1000;

export class Link {
  constructor(handlers) {
    this.handlers = handlers;
    this.waiting = new Map();
    this.nextId = 1;
    this.connect();
  }

  connect() {
    const address = new URL("socket", location.href);
    address.protocol = "ws:";
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.handlers.open?.();
    this.socket.onmessage = (event) => this.receive(event.data);
    this.socket.onclose = () => {
      for (const { reject } of this.waiting.values()) reject(new Error("the connection is lost"));
      this.waiting.clear();
      this.handlers.lost();
      setTimeout(() => this.connect(), RETRY_MS);
    };
  }

  receive(data) {
    const [header, blobs] = typeof data === "string" ? [JSON.parse(data), []] : unpack(data);
    if (header.is === "answer" && this.waiting.has(header.id)) {
      const { resolve, reject } = this.waiting.get(header.id);
      this.waiting.delete(header.id);
      if (header.error) reject(new Error(header.error));
      else resolve(header);
      return;
    }
    this.handlers[header.is]?.(header, blobs);
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  ask(message) {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      if (this.socket.readyState !== WebSocket.OPEN) {
        reject(new Error("there is no connection"));
        return;
      }
      this.waiting.set(id, { resolve, reject });
      this.send({ ...message, id });
    });
  }
}

function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let place = 4 + length;
  const blobs = header.blobs.map((size) => {
    place += size;
    return new Uint8Array(buffer, place - size, size);
  });
  return [header, blobs];
}

export const byId = (id) => document.getElementById(id);
export const on = (id, event, handler) => byId(id).addEventListener(event, handler);
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Element with attributes, text and children, made without parsing HTML.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Length in metres as a person reads it: 0.8012 m, 25.0 mm, 130 µm.
export function length(metres, digits = 4) {
  if (metres === null || metres === undefined || !Number.isFinite(metres)) return "none";
  const size = Math.abs(metres);
  if (size >= 0.1 || size === 0) return `${metres.toPrecision(digits)} m`;
  if (size >= 1e-4) return `${(1e3 * metres).toPrecision(Math.min(digits, 3))} mm`;
  return `${(1e6 * metres).toPrecision(Math.min(digits, 3))} µm`;
}

// Canvas with as many pixels as the screen has under it; returns its context, in CSS pixels.
export function fitted(canvas, heightPx) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const [wide, high] = [Math.round(width * ratio), Math.round(heightPx * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = `${heightPx}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, heightPx);
  return [context, width];
}

export function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
