// Small dense linear algebra: vectors are arrays, matrices and poses arrays of rows.

export const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);
export const add = (a, b) => a.map((x, k) => x + b[k]);
export const subtract = (a, b) => a.map((x, k) => x - b[k]);
export const scale = (a, s) => a.map((x) => x * s);
export const norm = (a) => Math.hypot(...a);
export const unit = (a) => scale(a, 1 / (norm(a) || 1));
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const apply = (m, x) => m.map((row) => dot(row, x));
export const transpose = (m) => (m.length ? m[0].map((_, k) => m.map((row) => row[k])) : []);
export const multiply = (a, b) => {
  const columns = transpose(b);
  return a.map((row) => columns.map((column) => dot(row, column)));
};
export const identity = (n) => Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => (i === j ? 1 : 0)));
export const zeros = (n) => new Array(n).fill(0);

// --- poses: [[R, p], [0, 1]]

export const rows = (flat) => [0, 4, 8, 12].map((k) => flat.slice(k, k + 4));
export const position = (pose) => [pose[0][3], pose[1][3], pose[2][3]];
export const rotation = (pose) => [pose[0].slice(0, 3), pose[1].slice(0, 3), pose[2].slice(0, 3)];
export const pose = (R, p) => [[...R[0], p[0]], [...R[1], p[1]], [...R[2], p[2]], [0, 0, 0, 1]];
export const move = (T, x) => add(apply(rotation(T), x), position(T));
export const turn = (T, x) => apply(rotation(T), x);
export const turnBack = (T, x) => apply(transpose(rotation(T)), x);

// A rotation whose third column is the direction.
export function towards(direction) {
  const z = unit(direction);
  const x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z));
  return transpose([x, cross(z, x), z]);
}

// --- solving

// The lower factor of a symmetric positive definite matrix, or null.
// Orthonormal directions (n of each) that rows A leave free, as rows: what is left of the space after Gram and Schmidt, the largest first.
export function freedoms(A, n) {
  const found = [], most = Math.max(...A.map(norm), 0);
  const left = (x) => {
    for (let k = 0; k < 2; k++) for (const e of found) x = subtract(x, scale(e, dot(e, x)));
    return x;
  };
  const take = (all, least) => {
    let rest = all.map(left);
    while (rest.length) {
      const sizes = rest.map(norm), k = sizes.indexOf(Math.max(...sizes));
      if (!(sizes[k] > least) || found.length === n) return;
      found.push(unit(left(unit(rest[k]))));
      rest.splice(k, 1);
      rest = rest.map(left);
    }
  };
  take(A, 1e-9 * most);
  const held = found.length;
  take(identity(n), 1e-6);
  return found.slice(held);
}

export function cholesky(a) {
  const n = a.length, l = a.map(() => zeros(n));
  for (let i = 0; i < n; i++)
    for (let j = 0; j <= i; j++) {
      let sum = a[i][j];
      for (let k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
      if (i === j && !(sum > 0)) return null;
      l[i][j] = i === j ? Math.sqrt(sum) : sum / l[j][j];
    }
  return l;
}

export function solve(l, b) {
  const n = b.length, x = b.slice();
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= l[i][k] * x[k];
    x[i] /= l[i][i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= l[k][i] * x[k];
    x[i] /= l[i][i];
  }
  return x;
}

// Eigenvalues, the smallest first, and eigenvectors as columns of a symmetric matrix, by Jacobi's rotations.
export function eigen(matrix) {
  const n = matrix.length, a = matrix.map((row) => row.slice()), v = identity(n);
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0, all = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) (all += a[i][j] ** 2), i !== j && (off += a[i][j] ** 2);
    if (!(off > 1e-34 * all)) break;
    for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) rotate(a, v, p, q);
  }
  const order = a.map((_, k) => k).sort((i, j) => a[i][i] - a[j][j]);
  return { values: order.map((k) => a[k][k]), vectors: v.map((row) => order.map((k) => row[k])) };
}

function rotate(a, v, p, q) {
  if (a[p][q] === 0) return;
  const angle = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const t = (angle < 0 ? -1 : 1) / (Math.abs(angle) + Math.hypot(angle, 1)), c = 1 / Math.hypot(t, 1), s = t * c;
  for (const m of [a, v])
    for (const row of m) {
      const x = row[p], y = row[q];
      row[p] = c * x - s * y;
      row[q] = s * x + c * y;
    }
  for (let k = 0; k < a.length; k++) {
    const x = a[p][k], y = a[q][k];
    a[p][k] = c * x - s * y;
    a[q][k] = s * x + c * y;
  }
}

// --- rotations

export function fromVector(w) {
  const angle = norm(w), s = angle < 1e-8 ? 0.5 - angle * angle / 48 : Math.sin(angle / 2) / angle;
  return [...scale(w, s), Math.cos(angle / 2)];
}

export function toVector(quaternion) {
  const size = norm(quaternion), sign = quaternion[3] < 0 ? -1 : 1;
  const q = scale(quaternion, sign / (size || 1)), s = norm(q.slice(0, 3));
  const ratio = s < 1e-8 ? 2 : 2 * Math.atan2(s, q[3]) / s;
  return scale(q.slice(0, 3), ratio);
}

export function toQuaternion(R) {
  const trace = R[0][0] + R[1][1] + R[2][2];
  const choices = [R[0][0], R[1][1], R[2][2], trace], k = choices.indexOf(Math.max(...choices));
  let q;
  if (k === 3) q = [R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1], 1 + trace];
  else {
    const i = k, j = (k + 1) % 3, l = (k + 2) % 3;
    q = zeros(4);
    q[i] = 1 + R[i][i] - R[j][j] - R[l][l];
    q[j] = R[j][i] + R[i][j];
    q[l] = R[l][i] + R[i][l];
    q[3] = R[l][j] - R[j][l];
  }
  return scale(q, (q[3] < 0 ? -1 : 1) / norm(q));
}
