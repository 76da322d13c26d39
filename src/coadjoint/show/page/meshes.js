// Surfaces as triangles: positions, normals and indices. Round ones have radius 1 and stand along z.

const TURN = 2 * Math.PI;

// The surface of revolution about z of a profile of [radius, height, normal radius, normal height].
function lathe(profile, sides = 24) {
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

export const fine = () => sphere(24, 44);

export function sphere(rings = 12, sides = 24) {
  const profile = [];
  for (let k = 0; k <= rings; k++) {
    const angle = (Math.PI * k) / rings - Math.PI / 2, r = Math.cos(angle), z = Math.sin(angle);
    profile.push([r, z, r, z]);
  }
  return lathe(profile, sides);
}

export const tube = () => lathe([[1, 0, 1, 0], [1, 1, 1, 0]]);
export const drum = () => lathe([[0, -1, 0, -1], [0.9, -1, 0, -1], [0.9, -1, 0.4, -0.9], [1, -0.92, 0.9, -0.4], [1, -0.92, 1, 0], [1, 0.92, 1, 0], [1, 0.92, 0.9, 0.4], [0.9, 1, 0.4, 0.9], [0.9, 1, 0, 1], [0, 1, 0, 1]]);
export const cylinder = () => lathe([[0, -0.5, 0, -1], [1, -0.5, 0, -1], [1, -0.5, 1, 0], [1, 0.5, 1, 0], [1, 0.5, 0, 1], [0, 0.5, 0, 1]]);
export const cone = () => lathe([[0, 0, 0, -1], [1, 0, 0, -1], [1, 0, 0.9, 0.44], [0, 1, 0.9, 0.44]]);

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
  const positions = new Float32Array(9 * count), normals = new Float32Array(9 * count), indices = new Uint32Array(3 * count);
  for (let i = 0; i < 3 * count; i++) {
    const p = 3 * faces[i], f = i - (i % 3);
    let x = 0, y = 0, z = 0;
    for (let other = first[faces[i]]; other >= 0; other = next[other]) {
      const g = other - (other % 3);
      if (own[f] * own[g] + own[f + 1] * own[g + 1] + own[f + 2] * own[g + 2] > AGREE) (x += areas[g]), (y += areas[g + 1]), (z += areas[g + 2]);
    }
    const size = Math.hypot(x, y, z), mean = size > 0 ? [x / size, y / size, z / size] : own.slice(f, f + 3);
    for (let j = 0; j < 3; j++) (positions[3 * i + j] = corners[p + j]), (normals[3 * i + j] = mean[j]);
    indices[i] = i;
  }
  return { positions, normals, indices };
}
