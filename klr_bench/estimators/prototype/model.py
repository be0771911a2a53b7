"""Model with a kernel and prototypes: parameters, objective and gradients.

The scores of a row are f_y(x) = b_y0 + sum_j b_yj k(x, u_j) with the prototypes u_j.  For the log loss they give
P(y|x) = softmax_y(f), and with g_iy = 1[y = y_i] - P(y|x_i) the log likelihood L has the slopes (prototype_klr, "The
gradient with respect to a reference vector")

    dL/db_y0 = sum_i g_iy        dL/du_j    = sum_i (sum_y g_iy b_yj) dk(x_i, u_j)/du_j
    dL/db_yj = sum_i g_iy k_ij   dL/dtheta  = sum_ij (sum_y g_iy b_yj) dk(x_i, u_j)/dtheta

With weights v_i each g_iy, and each term of L, is multiplied by v_i, and n is their sum.  The objective is
-L/n + (l2/2) sum b_yj^2 + l1 sum |u_jk|.  With two classes b has one row, for the second; that of the first is 0.
Another loss has minus its derivative by f_y(x_i) in place of g_iy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from klr_bench.estimators.core.rows import in_layout
from klr_bench.estimators.prototype.kernels import PrototypeKernel
from klr_bench.estimators.prototype.losses import LOSSES, Loss

BLOCK = 2048
"""Maximum number of rows whose kernel values are in memory at the same time."""
DENSE = 2**24
"""Maximum number of entries of a block of CSR rows that is converted to a dense array."""
PARTS = ("b", "u", "theta")


@dataclass(frozen=True)
class Layout:
    """Positions of the intercepts, coefficients, prototypes and theta in one parameter vector.

    There are M scores per row, J prototypes and d features.  The vector consists of three parts: "b", which has the
    intercepts b_0 and then the coefficients b, "u" and "theta".
    """

    M: int
    J: int
    d: int

    @property
    def slices(self):
        """Dict of slices of x: "b" (intercepts and coefficients), "u" (prototypes) and "theta"."""
        ends = np.cumsum([0, self.M * (1 + self.J), self.J * self.d, 1])
        return {part: slice(ends[i], ends[i + 1]) for i, part in enumerate(PARTS)}

    @property
    def size(self):
        return self.M * (1 + self.J) + self.J * self.d + 1

    def views(self, x):
        """Split the vector x into views of intercepts, coefficients, prototypes and theta."""
        b, u, theta = (x[place] for place in self.slices.values())
        return b[: self.M], b[self.M :].reshape(self.J, self.M), u.reshape(self.d, self.J), theta


class Rows:
    """Rows of data with class codes, weights and an optional origin, which `block` subtracts."""

    def __init__(self, X, y=None, origin=None, v=None):
        self.X, self.y, self.origin = X, y, origin
        self.v = np.ones(X.shape[0]) if v is None else v

    def __len__(self):
        return self.X.shape[0]

    def block(self, rows):
        """Return the selected rows (a slice or index array), their class codes and their weights."""
        X = self.X[rows]
        if self.origin is not None:
            X = in_layout(X, sparse=False) - self.origin
        return X, None if self.y is None else self.y[rows], self.v[rows]

    def blocks(self):
        """Iterate over all rows in order, in blocks of bounded size."""
        size = BLOCK
        if self.origin is not None and sp.issparse(self.X):
            size = max(1, min(BLOCK, DENSE // len(self.origin)))
        for start in range(0, len(self), size):
            yield self.block(slice(start, start + size))

    def shuffled(self, random, size):
        """Iterate over all rows in random order, in batches of `size` rows."""
        order, sparse = random.permutation(len(self)), sp.issparse(self.X)
        rows = self.subset(order) if sparse else self  # repeated indexing of a CSR matrix is slow
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield rows.block(part if sparse else order[part])

    def subset(self, rows):
        """Return the rows selected by an index array as a new `Rows` object."""
        return Rows(self.X[rows], None if self.y is None else self.y[rows], self.origin, self.v[rows])

    def split(self, share, random):
        """Return training rows and a stratified sample of validation rows (None if it is empty)."""
        if not share:
            return self, None
        order, out = random.permutation(len(self)), np.zeros(len(self), dtype=bool)
        for code in range(self.y.max() + 1):
            of_class = order[self.y[order] == code]
            out[of_class[: int(share * len(of_class))]] = True
        return (self.subset(np.flatnonzero(~out)), self.subset(np.flatnonzero(out))) if out.any() else (self, None)


@dataclass(frozen=True)
class Model:
    """Kernel, loss and penalties, which define the objective of the parameter vector x.

    Computations use the precision of the rows.
    """

    layout: Layout
    kernel: PrototypeKernel
    l1: float = 0.0
    l2: float = 0.0
    loss_name: str = "logit"

    @property
    def loss(self) -> Loss:
        """The functions of the loss, which are not stored with the model."""
        return LOSSES[self.loss_name]

    def scores(self, x, rows):
        """Return the class scores of all rows as a float64 array of shape (n, M)."""
        return np.concatenate([self._scores_and_kernel(x, X)[0] for X, _, _ in rows.blocks()])

    def kernel_values(self, x, X):
        """Return the kernel values between a block of rows and the prototypes, of shape (m, J)."""
        return self._scores_and_kernel(x, X)[1]

    def objective(self, x, rows):
        """Return the objective: the weighted mean loss of all rows plus the penalties."""
        total = sum(v @ self.loss.values(self._scores_and_kernel(x, X)[0], y) for X, y, v in rows.blocks())
        _, B, U, _ = self.layout.views(x)
        l1 = self.l1 * np.abs(U).sum(dtype=np.float64) if self.l1 else 0.0
        return float(total / rows.v.sum() + self.l2 / 2 * np.vdot(B, B) + l1)

    def slopes_of_all(self, x, rows, parts=PARTS):
        """Return the objective without the L1 penalty, and its gradient with respect to x."""
        _, B, _, _ = self.layout.views(x)
        total, sums = self.l2 / 2 * np.vdot(B, B), np.zeros(len(x))
        mean = rows.v.mean()
        for X, y, v in rows.blocks():
            F, slopes = self.slopes(x, X, y, v / mean, parts)
            total += v @ self.loss.values(F, y) / (mean * len(rows))
            for part, value in slopes.items():
                sums[self.layout.slices[part]] += len(y) / len(rows) * value
        return float(total), sums

    def slopes(self, x, X, y, v, parts=PARTS):
        """Return the scores of a block of rows, and the gradient of its mean loss as a dict."""
        F, K, part = self._scores_and_kernel(x, X)
        _, B, U, theta = self.layout.views(x.astype(X.dtype, copy=False))
        minus_g = (v[:, None] * self.loss.slopes(F, y) / len(y)).astype(X.dtype)
        slopes = {}
        if "b" in parts:
            by_B = K.T @ minus_g + X.dtype.type(self.l2) * B
            slopes["b"] = np.concatenate([minus_g.sum(axis=0), by_B.ravel()])
        if "u" in parts or "theta" in parts:
            W = minus_g @ B.T
            by_U, by_theta = self.kernel.slopes(X, U, float(theta[0]), K, part, W, parts)
            slopes |= {"u": by_U.ravel()} if "u" in parts else {}
            slopes |= {"theta": np.array([by_theta], X.dtype)} if "theta" in parts else {}
        return F, slopes

    def _scores_and_kernel(self, x, X):
        b0, B, U, theta = self.layout.views(x.astype(X.dtype, copy=False))
        K, part = self.kernel.values(X, U, float(theta[0]))
        return (b0 + K @ B).astype(np.float64), K, part
