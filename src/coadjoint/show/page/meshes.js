// Surfaces as triangles: positions, normals and indices. Round ones have radius 1 and stand along z.

const TURN = 2 * Math.PI;

// The surface of revolution about z of a profile of [radius, height, normal radius, normal height].
function lathe(profile, sides = 40) {
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

export function sphere() {
  const profile = [];
  for (let k = 0; k <= 22; k++) {
    const angle = (Math.PI * k) / 22 - Math.PI / 2, r = Math.cos(angle), z = Math.sin(angle);
    profile.push([r, z, r, z]);
  }
  return lathe(profile);
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

// Triangles with given corners, lit by the normals of their faces, averaged where corners are shared and faces nearly agree.
export function faceted(corners, indices) {
  const positions = [], normals = [], order = [];
  for (let k = 0; k + 2 < indices.length; k += 3) {
    const [a, b, c] = [0, 1, 2].map((i) => [0, 1, 2].map((j) => corners[3 * indices[k + i] + j]));
    const u = b.map((x, j) => x - a[j]), v = c.map((x, j) => x - a[j]);
    const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    const size = Math.hypot(...n) || 1;
    for (const p of [a, b, c]) {
      order.push(positions.length / 3);
      positions.push(...p);
      normals.push(n[0] / size, n[1] / size, n[2] / size);
    }
  }
  return { positions, normals, indices: order };
}
