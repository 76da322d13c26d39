// A small renderer on WebGL 2: lit surfaces, their shadow on the floor, a grid that fades.

import { box, cone, drum, sphere, square, tube } from "./meshes.js";

const SOLID_VERTEX = `#version 300 es
in vec3 position; in vec3 normal;
uniform mat4 world; uniform mat4 view; uniform mat3 turn; uniform vec2 taper;
centroid out vec3 at; centroid out vec3 facing;
void main() {
  vec3 p = position;
  p.xy *= mix(taper.x, taper.y, p.z);
  vec4 place = world * vec4(p, 1.0);
  at = place.xyz; facing = turn * normal;
  gl_Position = view * place;
}`;

const SOLID_FRAGMENT = `#version 300 es
precision highp float;
centroid in vec3 at; centroid in vec3 facing;
uniform vec4 colour; uniform vec3 eye; uniform vec3 sky; uniform vec3 ground; uniform float glow;
out vec4 result;
void main() {
  vec3 n = normalize(facing), e = normalize(eye - at);
  if (dot(n, e) < 0.0) n = -n;
  vec3 key = normalize(vec3(0.45, -0.55, 0.9)), fill = normalize(vec3(-0.8, 0.3, 0.25));
  float lit = 0.62 * max(dot(n, key), 0.0) + 0.16 * max(dot(n, fill), 0.0);
  vec3 around = mix(ground, sky, 0.5 + 0.5 * n.z);
  float s = max(dot(n, normalize(key + e)), 0.0), edge = 1.0 - max(dot(n, e), 0.0);
  s *= s; s *= s; s *= s; s *= s; s *= s;
  vec3 light = colour.rgb * (lit + around * 0.46) + s * 0.18 + edge * edge * edge * 0.10 * sky;
  result = vec4(mix(light, colour.rgb, glow), colour.a);
}`;

const FLOOR_VERTEX = `#version 300 es
in vec3 position; uniform mat4 view; uniform vec4 place; out vec2 at;
void main() { at = position.xy * 2.0; vec3 p = vec3(place.xy + at * place.w, place.z); gl_Position = view * vec4(p, 1.0); at = p.xy; }`;

const FLOOR_FRAGMENT = `#version 300 es
precision highp float;
in vec2 at; uniform vec3 ink; uniform vec4 place; uniform float cell; out vec4 result;
float line(float size, vec2 pixel) { vec2 d = abs(fract(at / size - 0.5) - 0.5) * size / pixel; return 1.0 - min(min(d.x, d.y), 1.0); }
void main() {
  float far = length(at - place.xy) / place.w, fade = smoothstep(1.0, 0.15, far);
  vec2 pixel = fwidth(at), axes = abs(at) / pixel;
  float alpha = 0.07 * line(cell, pixel) + 0.11 * line(cell * 5.0, pixel);
  vec3 shade = ink;
  if (axes.y < 1.2) { shade = vec3(0.80, 0.27, 0.22); alpha = 0.4; }
  if (axes.x < 1.2) { shade = vec3(0.24, 0.55, 0.28); alpha = 0.4; }
  result = vec4(shade, alpha * fade);
}`;

// Pixels of a coarse picture for each of the page, along a side.
const COARSE = 0.6;

const flat = (rows) => new Float32Array([0, 1, 2, 3].flatMap((j) => [0, 1, 2, 3].map((i) => rows[i][j])));

export class Renderer {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = (this.gl = canvas.getContext("webgl2", { antialias: false, stencil: true }));
    if (!gl) throw new Error("This browser has no WebGL 2: the robot cannot be drawn, the numbers are right.");
    this.solid = program(gl, SOLID_VERTEX, SOLID_FRAGMENT);
    this.floor = program(gl, FLOOR_VERTEX, FLOOR_FRAGMENT);
    this.meshes = {};
    this.coarse = false;
    for (const [name, make] of Object.entries({ tube, drum, cone })) this.keep(name, make(24), true, () => make(16));
    this.keep("sphere", sphere(12, 24), true, () => sphere(7, 14));
    this.keep("fine", sphere(24, 44), true, () => sphere(12, 24));
    this.keep("box", box(), true);
    this.keep("square", square());
    this.smooth = { frame: gl.createFramebuffer(), colour: gl.createRenderbuffer(), depth: gl.createRenderbuffer(), size: "" };
  }

  // Keep a mesh under a name, to be drawn: of a closed one only the faces towards the eye. `rough` makes what coarse pictures show in its
  // place: where a program draws, a picture takes as long as its triangles are many.
  keep(name, mesh, closed = false, rough = null) {
    this.meshes[name] = { ...this.loaded(mesh), closed, rough };
  }

  loaded({ positions, normals, indices }) {
    const gl = this.gl, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    [positions, normals].forEach((data, place) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(data), gl.STATIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(indices), gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    return { array, count: indices.length };
  }

  fit() {
    const { canvas } = this, ratio = this.coarse ? COARSE : Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    return width / height;
  }

  // Draw into a picture of four samples a pixel; a coarse picture is drawn as it is.
  begin() {
    const { gl, canvas, smooth } = this, size = `${canvas.width} ${canvas.height}`;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.coarse ? null : smooth.frame);
    if (this.coarse || smooth.size === size) return;
    smooth.size = size;
    const samples = Math.min(4, gl.getParameter(gl.MAX_SAMPLES));
    for (const [buffer, format, place] of [[smooth.colour, gl.RGBA8, gl.COLOR_ATTACHMENT0], [smooth.depth, gl.DEPTH24_STENCIL8, gl.DEPTH_STENCIL_ATTACHMENT]]) {
      gl.bindRenderbuffer(gl.RENDERBUFFER, buffer);
      gl.renderbufferStorageMultisample(gl.RENDERBUFFER, samples, format, canvas.width, canvas.height);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, place, gl.RENDERBUFFER, buffer);
    }
  }

  end() {
    const { gl, smooth } = this, { width, height } = this.canvas;
    if (this.coarse) return;
    gl.bindFramebuffer(gl.READ_FRAMEBUFFER, smooth.frame);
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
    gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
  }

  // Items: { mesh, world (rows), colour [r, g, b], alpha, taper, glow, shadow, over }; what is over is seen through the rest.
  draw(items, camera, look) {
    const gl = this.gl, aspect = this.fit(), view = flat(camera.view(aspect)), eye = camera.eye();
    this.begin();
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(...look.paper, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.useProgram(this.solid.program);
    const u = this.solid.uniforms;
    gl.uniformMatrix4fv(u.view, false, view);
    gl.uniform3fv(u.eye, eye);
    gl.uniform3fv(u.sky, look.sky);
    gl.uniform3fv(u.ground, look.ground);
    for (const item of items) if (!(item.alpha < 1) && !item.over) this.item(item);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    if (look.grid) this.drawFloor(view, look);
    gl.useProgram(this.solid.program);
    if (look.shadow && !this.coarse && eye[2] > look.floor) this.drawShadow(items.filter((x) => x.shadow), look);
    for (const item of items) if (item.alpha < 1) this.item(item);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
    if (items.some((item) => item.over)) gl.clear(gl.DEPTH_BUFFER_BIT);
    for (const item of items) if (item.over) this.item(item);
    this.end();
  }

  drawFloor(view, look) {
    const gl = this.gl, u = this.floor.uniforms;
    gl.useProgram(this.floor.program);
    gl.uniformMatrix4fv(u.view, false, view);
    gl.uniform4f(u.place, look.middle[0], look.middle[1], look.floor, look.reach);
    gl.uniform3fv(u.ink, look.ink);
    gl.uniform1f(u.cell, look.cell);
    this.triangles("square");
  }

  // Everything flattened along the light onto the floor, each pixel darkened once.
  drawShadow(items, look) {
    const gl = this.gl, z = look.floor + 1e-4 * look.reach, [a, b] = [0.5, -0.61];
    const flatten = [[1, 0, -a, a * z], [0, 1, -b, b * z], [0, 0, 0, z], [0, 0, 0, 1]];
    gl.enable(gl.STENCIL_TEST);
    gl.stencilFunc(gl.EQUAL, 0, 255);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    for (const item of items) {
      const w = item.world, world = flatten.map((row) => [0, 1, 2, 3].map((j) => row[0] * w[0][j] + row[1] * w[1][j] + row[2] * w[2][j] + row[3] * w[3][j]));
      this.item({ ...item, world, colour: [0, 0, 0], alpha: look.shadow, glow: 1 });
    }
    gl.disable(gl.STENCIL_TEST);
  }

  item({ mesh, world, colour, alpha = 1, taper = [1, 1], glow = 0 }) {
    const gl = this.gl, u = this.solid.uniforms;
    gl.uniformMatrix4fv(u.world, false, flat(world));
    gl.uniformMatrix3fv(u.turn, false, cofactors(world));
    gl.uniform4f(u.colour, ...colour, alpha);
    gl.uniform2fv(u.taper, taper);
    gl.uniform1f(u.glow, glow);
    this.triangles(mesh);
  }

  triangles(name) {
    const gl = this.gl, mesh = this.meshes[name], rough = this.coarse && mesh.rough;
    if (rough) mesh.simple ??= this.loaded(mesh.rough());
    const { array, count } = rough ? mesh.simple : mesh;
    if (mesh.closed) gl.enable(gl.CULL_FACE);
    else gl.disable(gl.CULL_FACE);
    gl.bindVertexArray(array);
    gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 0);
  }
}

// The matrix that turns normals, for a world that may stretch: the cofactors, column by column.
function cofactors(w) {
  const c = (i, j) => {
    const [a, b] = [(i + 1) % 3, (i + 2) % 3], [d, e] = [(j + 1) % 3, (j + 2) % 3];
    return w[a][d] * w[b][e] - w[a][e] * w[b][d];
  };
  return new Float32Array([0, 1, 2].flatMap((j) => [0, 1, 2].map((i) => c(i, j))));
}

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.bindAttribLocation(made, 0, "position");
  gl.bindAttribLocation(made, 1, "normal");
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  const uniforms = {};
  for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); k++) {
    const { name } = gl.getActiveUniform(made, k);
    uniforms[name] = gl.getUniformLocation(made, name);
  }
  return { program: made, uniforms };
}
