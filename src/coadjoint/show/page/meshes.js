// Surfaces as triangles: positions, normals and indices. Round ones have radius 1 and stand along z.

const TURN = 2 * Math.PI;

// The surface of revolution about z of a profile of [radius, height, normal radius, normal height].
function lathe(profile, sides) {
  const positions = [], normals = [], indices = [];
  profile.forEach(([r, z, nr, nz]) => {
    for (let k = 0; k <= sides; k++) {
      const c = Math.cos((TURN * k) / sides), s = Math.sin((TURN * k) / sides);
      positions.push(r * c, r * s, z);
      normals.push(nr * c, nr * s, nz);
    }
  });
  for (let i = 0; i + 1 < profile.length; i++)
    for (let k = 0; k < sides; k++) {
      const a = i * (sides + 1) + k, b = a + sides + 1;
      indices.push(a, a + 1, b, b, a + 1, b + 1);
    }
  return { positions, normals, indices };
}

export function sphere(rings, sides) {
  const profile = [];
  for (let k = 0; k <= rings; k++) {
    const angle = (Math.PI * k) / rings - Math.PI / 2, r = Math.cos(angle), z = Math.sin(angle);
    profile.push([r, z, r, z]);
  }
  return lathe(profile, sides);
}

export const tube = (sides) => lathe([[1, 0, 1, 0], [1, 1, 1, 0]], sides);
export const drum = (sides) => lathe([[0, -1, 0, -1], [0.9, -1, 0, -1], [0.9, -1, 0.4, -0.9], [1, -0.92, 0.9, -0.4], [1, -0.92, 1, 0], [1, 0.92, 1, 0], [1, 0.92, 0.9, 0.4], [0.9, 1, 0.4, 0.9], [0.9, 1, 0, 1], [0, 1, 0, 1]], sides);
export const cone = (sides) => lathe([[0, 0, 0, -1], [1, 0, 0, -1], [1, 0, 0.9, 0.44], [0, 1, 0.9, 0.44]], sides);

export function box() {
  const positions = [], normals = [], indices = [];
  for (const axis of [0, 1, 2])
    for (const side of [-1, 1]) {
      const first = positions.length / 3, [u, v] = [(axis + 1) % 3, (axis + 2) % 3];
      for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
        const p = [0, 0, 0], n = [0, 0, 0];
        p[axis] = side / 2;
        p[u] = a / 2;
        p[v] = b / 2;
        n[axis] = side;
        positions.push(...p);
        normals.push(...n);
      }
      const order = side > 0 ? [0, 1, 2, 0, 2, 3] : [0, 2, 1, 0, 3, 2];
      indices.push(...order.map((k) => first + k));
    }
  return { positions, normals, indices };
}

// A square of side 1 in the plane of x and y.
export const square = () => ({ positions: [-0.5, -0.5, 0, 0.5, -0.5, 0, 0.5, 0.5, 0, -0.5, 0.5, 0], normals: [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1], indices: [0, 1, 2, 0, 2, 3] });

// The cosine between two faces below which their common edge is sharp.
const AGREE = 0.6;

// Triangles with given corners, lit smoothly: each corner has the mean normal of the faces that meet there and nearly agree with its own.
export function creased(corners, faces) {
  const count = faces.length / 3, areas = new Float32Array(3 * count), own = new Float32Array(3 * count);
  const first = new Int32Array(corners.length / 3).fill(-1), next = new Int32Array(3 * count);  // the corners at each place, as a chain
  for (let k = 0; k < count; k++) {
    const [a, b, c] = [3 * faces[3 * k], 3 * faces[3 * k + 1], 3 * faces[3 * k + 2]];
    const ux = corners[b] - corners[a], uy = corners[b + 1] - corners[a + 1], uz = corners[b + 2] - corners[a + 2];
    const vx = corners[c] - corners[a], vy = corners[c + 1] - corners[a + 1], vz = corners[c + 2] - corners[a + 2];
    const n = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx], size = Math.hypot(n[0], n[1], n[2]) || 1;
    for (let j = 0; j < 3; j++) {
      areas[3 * k + j] = n[j];
      own[3 * k + j] = n[j] / size;
      next[3 * k + j] = first[faces[3 * k + j]];
      first[faces[3 * k + j]] = 3 * k + j;
    }
  }
  const positions = [], normals = [], indices = new Uint32Array(3 * count), taken = new Int32Array(corners.length / 3).fill(-1), rest = [];
  for (let i = 0; i < 3 * count; i++) {
    const place = faces[i], f = i - (i % 3);
    let x = 0, y = 0, z = 0;
    for (let other = first[place]; other >= 0; other = next[other]) {
      const g = other - (other % 3);
      if (own[f] * own[g] + own[f + 1] * own[g + 1] + own[f + 2] * own[g + 2] > AGREE) (x += areas[g]), (y += areas[g + 1]), (z += areas[g + 2]);
    }
    const size = Math.hypot(x, y, z), mean = size > 0 ? [x / size, y / size, z / size] : own.slice(f, f + 3);
    // Faces that are lit alike at a place share its vertex.
    let k = taken[place];
    while (k >= 0 && (normals[3 * k] !== mean[0] || normals[3 * k + 1] !== mean[1] || normals[3 * k + 2] !== mean[2])) k = rest[k];
    if (k < 0) {
      k = rest.push(taken[place]) - 1;
      taken[place] = k;
      positions.push(corners[3 * place], corners[3 * place + 1], corners[3 * place + 2]);
      normals.push(...mean);
    }
    indices[i] = k;
  }
  return { positions, normals, indices };
}

// Triangles whose corners within a cell of a grid are one, their mean; those that vanish by it are left out.
export function simplified(corners, faces, cell) {
  const cells = new Map(), sums = [], which = new Uint32Array(corners.length / 3), kept = [];
  for (let k = 0; k < which.length; k++) {
    const [x, y, z] = [0, 1, 2].map((i) => corners[3 * k + i]), key = [x, y, z].map((a) => Math.round(a / cell)).join();
    if (!cells.has(key)) cells.set(key, sums.push([0, 0, 0, 0]) - 1);
    const sum = sums[(which[k] = cells.get(key))];
    [x, y, z, 1].forEach((a, i) => (sum[i] += a));
  }
  for (let f = 0; f < faces.length; f += 3) {
    const [a, b, c] = [0, 1, 2].map((j) => which[faces[f + j]]);
    if (a !== b && b !== c && c !== a) kept.push(a, b, c);
  }
  return { corners: Float32Array.from(sums.flatMap(([x, y, z, n]) => [x / n, y / n, z / n])), faces: Uint32Array.from(kept) };
}
