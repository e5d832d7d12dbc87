// 3D points: every pixel of the depth picture, put into space by the camera. Drag to turn, with
// shift or two fingers to move, wheel to go nearer, double click for the view of the left lens.
//
// The upper half of the picture has depth in red and green (16 bit) and sigma in blue (8 bit), both
// even in the logarithm with 0 for none; the lower half is the left view.

const COLOURS = 32;
const ROOM = 1.1; // around the first view
const VERTEX = `#version 300 es
precision highp float;
uniform sampler2D picture;
uniform vec4 camera; // focal length and centre in pixels of the picture, and its width
uniform vec4 ranges; // ends of depth, and of sigma, as logarithms
uniform vec4 eye; // point that is looked at, and the distance from it
uniform mat3 turn;
uniform vec3 screen; // focal length by half of the width and of the height, and the width
uniform float cut; // largest sigma, as a share of its range
uniform int mode;
uniform vec3 colours[${COLOURS}];
out vec3 colour;
void main() {
  int wide = int(camera.w);
  ivec2 place = ivec2(gl_VertexID % wide, gl_VertexID / wide);
  vec3 coded = floor(255.0 * texelFetch(picture, place, 0).rgb + 0.5);
  float code = 256.0 * coded.r + coded.g;
  float sigma = (coded.b - 1.0) / 254.0;
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = 1.0;
  if (code < 1.0 || sigma > cut) return;
  float share = (code - 1.0) / 65534.0;
  float z = exp(mix(ranges.x, ranges.y, share));
  vec3 point = turn * (vec3((vec2(place) - camera.yz) * z / camera.x, z) - eye.xyz);
  point.z += eye.w;
  float near = 0.01 * eye.w;
  if (point.z < near) return;
  gl_Position = vec4(point.x * screen.x, -point.y * screen.y, point.z - 2.0 * near, point.z);
  gl_PointSize = max(0.5 * screen.z * screen.x * z / camera.x / point.z + 0.7, 1.0);
  int below = textureSize(picture, 0).y / 2;
  colour = texelFetch(picture, place + ivec2(0, below), 0).rgb;
  if (mode > 0) colour = colours[int(float(${COLOURS - 1}) * clamp(mode > 1 ? share : sigma, 0.0, 1.0) + 0.5)];
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
in vec3 colour;
out vec4 shown;
void main() { shown = vec4(colour, 1.0); }`;

export class Space {
  constructor(canvas) {
    this.canvas = canvas;
    this.options = { mode: 0, colours: [], cut: 1 };
    this.gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true });
    this.reset();
    if (!this.gl) return;
    const gl = this.gl;
    this.program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
    }
    gl.linkProgram(this.program);
    if (!gl.getProgramParameter(this.program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(this.program));
    gl.useProgram(this.program);
    gl.enable(gl.DEPTH_TEST);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
    const pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pointers.set(event.pointerId, event); });
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      pointers.set(event.pointerId, event);
      const by = [event.clientX - before.clientX, event.clientY - before.clientY].map((one) => one / canvas.clientWidth);
      if (event.shiftKey || pointers.size > 1) this.move = this.move.map((one, i) => one + by[i]);
      else this.angles = [this.angles[0] + 4 * by[0], Math.min(Math.max(this.angles[1] + 4 * by[1], -1.5), 1.5)];
      this.draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.away = Math.min(Math.max(this.away * Math.exp(event.deltaY / 600), 0.05), 20);
      this.draw();
    }, { passive: false });
    canvas.addEventListener("dblclick", () => { this.reset(); this.draw(); });
  }

  reset() {
    [this.angles, this.move, this.away] = [[0, 0], [0, 0], 1];
  }

  show(bitmap, legend) {
    this.legend = legend;
    this.gl.texImage2D(this.gl.TEXTURE_2D, 0, this.gl.RGB, this.gl.RGB, this.gl.UNSIGNED_BYTE, bitmap);
    this.draw();
  }

  draw() {
    const { gl, canvas, legend, options } = this;
    if (!gl || !legend) return;
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [canvas.clientWidth, canvas.clientHeight].map((one) => Math.round(one * ratio));
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0.08, 0.09, 0.11, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const set = (kind, name, ...values) => gl[`uniform${kind}`](gl.getUniformLocation(this.program, name), ...values);
    const middle = legend.middle;
    const [[sinX, cosX], [sinY, cosY]] = this.angles.map((one) => [Math.sin(-one), Math.cos(one)]);
    const focal = (2 * legend.focal) / legend.width / ROOM;
    const shift = this.move.map((one, i) => (-one * 2 * middle * this.away) / focal);
    set("4f", "camera", legend.focal, ...legend.centre, legend.width);
    set("4f", "ranges", ...[legend.near, legend.far, legend.low, legend.high].map(Math.log));
    set("4f", "eye", ...shift, middle, middle * this.away);
    set("Matrix3fv", "turn", false, [cosX, sinX * sinY, -sinX * cosY, 0, cosY, sinY, sinX, -cosX * sinY, cosX * cosY]);
    set("3f", "screen", focal, (focal * canvas.width) / canvas.height, canvas.width);
    set("1f", "cut", options.cut);
    set("1i", "mode", options.mode);
    set("3fv", "colours", options.colours.length ? options.colours.flat() : new Array(3 * COLOURS).fill(1));
    gl.drawArrays(gl.POINTS, 0, legend.width * legend.height);
  }
}
