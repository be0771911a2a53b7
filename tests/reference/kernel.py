"""Simple, slow reference implementations in float64, which process one example at a time.

They share no code with the package.  Norms are computed from the whole kernel matrix at every step, and averages by
adding whole coefficient vectors.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit


def first_within(values, best, tie=1e-9):
    """Return the index of the first value within a relative tolerance `tie` of the best one."""
    return next(i for i, value in enumerate(values) if abs(value - best) <= tie * abs(best))


def kernel_matrix(A, B, kernel="rbf", gamma=1.0, degree=3, coef0=1.0):
    """Return k(a, b) for all rows a of A and b of B, in float64."""
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    if kernel == "rbf":
        return np.exp(-gamma * np.sum((A[:, None, :] - B[None, :, :]) ** 2, axis=2))
    if kernel == "laplacian":
        return np.exp(-gamma * np.sum(np.abs(A[:, None, :] - B[None, :, :]), axis=2))
    products = np.sum(A[:, None, :] * B[None, :, :], axis=2)
    if kernel == "sigmoid":
        return np.tanh(gamma * products + coef0)
    return products if kernel == "linear" else (gamma * products + coef0) ** degree


def online(K, y, draws, step, radius=np.inf):
    """Run f <- project(s f + c k_t), where step(y, f, u, t) returns (insert, s, c).

    The result also has the number of mistakes, y f(x) <= 0, and the sum of the losses log(1 + exp(-y f(x))).
    """
    f = Budgeted(K)
    f.mistakes, f.losses, f.squares = 0, 0.0, 0.0
    for t in f:
        value = settled(f.value(t), np.sqrt(f.squares * abs(K[t, t])))
        f.mistakes += y[t] * value <= 0
        f.losses -= log_expit(y[t] * value)
        insert, s, c = step(y[t], value, draws[t], t + 1)
        f.coef *= s
        if insert:
            f.insert(t, c)
        factor = min(1, radius / max(np.sqrt(max(f.coef @ K @ f.coef, 0)), 1e-300))
        f.coef *= factor
        f.squares = (s**2 * f.squares + (c**2 * abs(K[t, t]) if insert else 0)) * factor**2
    return f


def settled(value, size):
    """Return -1, 0 or 1 instead of a value that differs from it by a rounding error, a share of `size`."""
    nearest = np.clip(np.round(value), -1, 1)
    return nearest if abs(value - nearest) <= 1e-10 * size else value


def nc(eta):
    return lambda y, f, u, t: (True, 1, eta * y * expit(-y * f))


def margin(eta):
    return lambda y, f, u, t: (u < (2 - eta) / (2 - eta + eta * expit(y * f)), 1, eta * y * expit(-y * f))


def auxiliary(eta, h, aux_gamma, aux_delta):
    def step(y, f, u, t):
        z, loss = y * f, -log_expit(y * f)
        if h == "log_gamma":
            return u < loss / np.logaddexp(np.log(aux_gamma), -z), 1, eta * y / (1 + aux_gamma * np.exp(z))
        if h == "log_one_plus_gamma":
            bound, slope = np.logaddexp(0, np.log(aux_gamma) - z), aux_gamma / (aux_gamma + np.exp(z))
            return u < loss / bound, 1, eta * y * slope
        return z <= aux_delta, 1, eta * y * expit(-z)

    return step


def loss_derivative(loss, y, f, delta=0.0):
    if loss == "logit":
        return -y * expit(-y * f)
    if loss == "exponential":
        return -y * np.exp(-y * f)
    if loss == "hinge":
        return -y if y * f < 1 else 0.0
    if loss == "squared_hinge":
        return -2 * y * (1 - y * f) if y * f < 1 else 0.0
    if loss == "smooth_hinge":
        return -y if y * f <= 0 else -y * (1 - y * f) if y * f < 1 else 0.0
    return 2 * (f - y) if abs(y - f) >= delta else 0.0


def oskl(G, eta, loss, delta):
    eta = eta or 0.9 / (G * (2 / delta if loss == "square" else 1))

    def step(y, f, u, t):
        slope = loss_derivative(loss, y, f, delta)
        assert abs(slope) <= G
        return u < abs(slope) / G, 1, -eta * G * np.sign(slope)

    return step


def pegasos(lam):
    return lambda y, f, u, t: (y * f < 1, 1 - 1 / t, y / (lam * t))


def perceptron():
    return lambda y, f, u, t: (y * f <= 0, 1, y)


def ogd(eta, loss):
    return lambda y, f, u, t: (loss_derivative(loss, y, f) != 0, 1, -eta * loss_derivative(loss, y, f))


class Budgeted:
    """Function with at most `budget` support vectors, stored in slots that are filled in order.

    `coef` (T,) are the coefficients, `total` their sum over the steps, and `inserted` marks examples ever inserted.
    """

    def __init__(self, K, budget=np.inf):
        self.K, self.budget, self.places = K, budget, []
        self.coef, self.total, self.inserted = np.zeros(len(K)), np.zeros(len(K)), np.zeros(len(K), dtype=bool)

    def value(self, t):
        """Return f(x_t)."""
        return np.sum(self.coef * self.K[:, t])

    @property
    def full(self):
        return len(self.places) == self.budget

    def insert(self, t, c, place=None):
        self.coef[t], self.inserted[t] = c, True
        if place is None:
            self.places.append(t)
        else:
            self.places[place] = t

    def __iter__(self):
        """Yield t = 0, 1, ... and add the coefficients to `total` before each step."""
        for t in range(len(self.K)):
            self.total += self.coef
            yield t


def forgetron(K, y, budget, variant):
    """Return f, whose attribute `phis` lists the factors by which it was shrunk."""
    f, mistakes, damages, n = Budgeted(K, budget), 0, 0.0, budget + 1
    f.phis = []
    for t in f:
        if y[t] * f.value(t) > 0:
            continue
        mistakes += 1
        oldest, phi = f.places.pop(0) if f.full else None, 1.0
        f.insert(t, y[t])
        if variant == "basic":
            phi = min(n ** (-1 / (2 * n)), np.sqrt(n / np.log(n)) / 4 / np.sqrt(f.coef @ K @ f.coef))
        elif oldest is not None:
            d, mu, allowed = abs(f.coef[oldest]), y[oldest] * f.value(oldest), 15 / 32 * mistakes - damages
            square, linear = d * d - 2 * d * mu, 2 * d  # of the damage (d phi)^2 + 2 d phi (1 - phi mu)
            if square + linear > allowed:
                roots = np.roots([square, linear, -allowed])
                phi = max(root.real for root in roots if abs(root.imag) < 1e-12 and 0 <= root.real <= 1)
            damages += square * phi**2 + linear * phi
        f.coef *= phi
        f.phis.append(phi)
        if oldest is not None:
            f.coef[oldest] = 0
    return f


def rbp(K, y, budget, draws):
    f = Budgeted(K, budget)
    for t in f:
        if y[t] * f.value(t) <= 0:
            place = int(draws[t] * budget) if f.full else None
            if f.full:
                f.coef[f.places[place]] = 0
            f.insert(t, y[t], place)
    return f


def budget_oskl(K, y, budget, draws, G, eta, loss="logit", delta=0.1):
    """Run OSKL with a budget; if K is float32, ties between angles are those of single precision."""
    f = Budgeted(K, budget)
    for t in f:
        slope = loss_derivative(loss, y[t], f.value(t), delta)
        assert abs(slope) <= G
        if not f.full:
            if draws[t] < abs(slope) / G:
                f.insert(t, -eta * G * np.sign(slope))
            continue
        cosines = [abs(K[i, t]) / np.sqrt(K[i, i]) if K[i, i] > 0 else 0 for i in f.places]
        if max(cosines) > 0:
            j = f.places[first_within(cosines, max(cosines), 2e-5 if K.dtype == np.float32 else 1e-9)]
            f.coef[j] -= eta * slope * K[j, t] / K[j, j]
    return f


def removal_probabilities(a, lengths):
    """Return the removal probabilities of BOGD++ for coefficients a and norms ||k(x_i, .)||."""
    s = (len(a) - 1) / np.sum(np.abs(a) * lengths)
    p = np.maximum(0, 1 - s * np.abs(a) * lengths)
    return p / p.sum()


def bogd(K, y, budget, draws, eta, gamma_max, lam, *, by_length):
    f = Budgeted(K, budget)
    for t in f:
        value = f.value(t)
        f.coef *= 1 - eta * lam
        if y[t] * value >= 1:
            continue
        place = None
        if f.full:
            members = np.array(f.places)
            p = np.full(budget, 1 / budget)
            if by_length:
                p = removal_probabilities(f.coef[members], np.sqrt(np.diag(K)[members]))
            place = int(np.searchsorted(np.cumsum(p), draws[t], side="right"))
            stay = np.arange(budget) != place
            a = f.coef[members[stay]]
            f.coef[members[stay]] = np.sign(a) * np.minimum(np.abs(a) / (1 - p[stay]), eta * gamma_max)
            f.coef[members[place]] = 0
        f.insert(t, eta * y[t], place)
    return f


def bsgd(K, y, budget, lam, loss, maintenance):
    """Run BSGD with removal or projection, which does not insert examples in the span of the others."""
    f = Budgeted(K, budget)

    def leave(t):
        members = f.places
        if maintenance == "projection":
            f.coef[members] += f.coef[t] * np.linalg.solve(K[np.ix_(members, members)], K[members, t])
        f.coef[t] = 0

    for t in f:
        slope, eta = loss_derivative(loss, y[t], f.value(t)), 1 / (lam * (t + 1))
        f.coef *= 1 - eta * lam
        if slope == 0:
            continue
        f.coef[t], members = -eta * slope, f.places
        if members and maintenance == "projection":
            near = K[members, t] @ np.linalg.solve(K[np.ix_(members, members)], K[members, t])
            if K[t, t] - near <= 1e-10 * K[t, t]:
                leave(t)
                continue
        f.inserted[t] = True
        f.places.append(t)
        if len(f.places) > budget:
            norms = np.abs(f.coef[f.places]) * np.sqrt(np.diag(K)[f.places])
            most = norms.min() * (1 + (2e-5 if K.dtype == np.float32 else 1e-9))
            least = next(i for i, norm in zip(f.places, norms, strict=True) if norm <= most)
            f.inserted[t] = least != t  # an example removed at once is not counted
            f.places.remove(least)
            leave(least)
    return f


def both_steps(loss_t, loss_b, length_t, length_b, w, room_t, room_b):
    """Return the two steps of DUOL, by coordinate ascent until convergence."""
    g = d = 0.0
    for _ in range(200_000):
        before = g, d
        g = np.clip((loss_t - w * d) / length_t, 0, room_t)
        d = np.clip((loss_b - w * g) / length_b, 0, room_b)
        if abs(g - before[0]) + abs(d - before[1]) <= 1e-16 * (g + d):
            break
    return g, d


def duol(K, y, C, rho):
    f = Budgeted(K)
    for t in f:
        values = K @ f.coef
        loss = 1 - y[t] * values[t]
        if loss <= 1e-9:
            continue
        conflicts = {i: y[i] * y[t] * K[i, t] for i in f.places if y[i] * values[i] <= 1 + 1e-9}
        most = min(conflicts.values(), default=0)
        b = next((i for i, w in conflicts.items() if w <= most * (1 - 1e-9)), None)
        if b is not None and conflicts[b] <= -rho:
            room = max(C - y[b] * f.coef[b], 0)
            g, d = both_steps(loss, max(1 - y[b] * values[b], 0), K[t, t], K[b, b], conflicts[b], C, room)
            f.coef[b] += d * y[b]
        else:
            g = min(C, loss / K[t, t])
        f.insert(t, g * y[t])
    return f


def alma(K, y, alpha, B, C):
    f, k = Budgeted(K), 1
    for t in f:
        length = np.sqrt(K[t, t])
        if length > 0 and y[t] * f.value(t) / length <= (1 - alpha) * B / np.sqrt(k):
            f.insert(t, C / np.sqrt(k) * y[t] / length)
            f.coef /= max(1, np.sqrt(f.coef @ K @ f.coef))
            k += 1
    return f


class Points:
    """Function with mergeable points; `coefs` and `total` hold the coefficients of all points ever used."""

    def __init__(self):
        self.rows, self.coefs, self.total, self.examples, self.places = [], [], [], [], []
        self.is_unclear = False

    def add(self, row, c, example=-1):
        """Add a point, which is an example or, if `example` is -1, a merged point."""
        self.places.append(len(self.rows))
        lists = self.rows, self.coefs, self.total, self.examples
        for values, value in zip(lists, (row, c, 0.0, example), strict=True):
            values.append(value)


def merge(a, b, distance):
    """Return (h, a_z, residual) by golden section search for h in [0, 1/2], as in the paper."""

    def weight(h):
        return a * np.exp(-distance * (1 - h) ** 2) + b * np.exp(-distance * h**2)

    low, high, golden = 0.0, 0.5, (np.sqrt(5) - 1) / 2
    while high - low > 1e-12:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if weight(left) > weight(right) else (left, high)
    h = (low + high) / 2
    return h, weight(h), a * a + b * b + 2 * a * b * np.exp(-distance) - weight(h) ** 2


def bsgd_merging(X, y, budget, lam, loss, gamma):
    f = Points()
    for t in range(len(y)):
        f.total = [total + a for total, a in zip(f.total, f.coefs, strict=True)]
        value = sum(a * np.exp(-gamma * np.sum((row - X[t]) ** 2)) for a, row in zip(f.coefs, f.rows, strict=True))
        slope, eta = loss_derivative(loss, y[t], value), 1 / (lam * (t + 1))
        f.coefs = [a * (1 - eta * lam) for a in f.coefs]
        if slope == 0:
            continue
        f.add(X[t], -eta * slope, t)
        if len(f.places) <= budget:
            continue
        sizes = np.abs([f.coefs[j] for j in f.places])
        m = min(j for j, size in zip(f.places, sizes, strict=True) if size <= sizes.min() * (1 + 1e-9))
        a, sign, merged = abs(f.coefs[m]), np.sign(f.coefs[m]), {}
        for n in f.places:
            if n != m and f.coefs[n] * sign > 0:
                merged[n] = merge(a, abs(f.coefs[n]), gamma * np.sum((f.rows[m] - f.rows[n]) ** 2))
        f.coefs[m] = 0
        f.places.remove(m)
        if merged:
            least = min(left for _, _, left in merged.values())
            rounding = 1e-14 * max(sizes) ** 2  # residuals are differences of squares
            differences = [left - least for _, _, left in merged.values()]
            f.is_unclear |= any(1e-13 * a * a < value < 1e-11 * a * a + rounding for value in differences)
            n = min(n for n, (_, _, left) in merged.items() if left <= least + 1e-12 * a * a)
            h, weight, _ = merged[n]
            f.coefs[n] = 0
            f.places.remove(n)
            f.add(h * f.rows[m] + (1 - h) * f.rows[n], sign * weight)
    return f


def norma(K, y, budget, eta, lam, loss):
    f = Budgeted(K, budget)
    for t in f:
        slope = loss_derivative(loss, y[t], f.value(t))
        f.coef *= 1 - eta * lam
        if slope == 0:
            continue
        if f.full:
            f.coef[f.places.pop(0)] = 0
        f.insert(t, -eta * slope)
    return f


def projectron(K, y, budget, eta=None):
    """Run Projectron, or Projectron++ if `eta` is given."""
    f = Budgeted(K, budget)
    for t in f:
        z, members = y[t] * f.value(t), f.places
        if z >= (1 if eta else 1e-300):
            continue
        k = K[members, t]
        a = np.linalg.solve(K[np.ix_(members, members)], k) if members else np.zeros(0)
        away, length = max(K[t, t] - k @ a, 0), k @ a
        if z <= 0:
            if not f.full and away > 1e-10 * K[t, t]:
                f.insert(t, y[t])
            else:
                f.coef[members] += y[t] * a
        elif (gain := 1 - z - np.sqrt(away) / eta) > 0:
            f.coef[members] += y[t] * min((1 - z) / length, 2 * gain / length, 1) * a
    return f


def batch_objective(K, y, b, lam):
    """Return (lam/2) b'Kb + (1/n) sum log(1 + exp(-y Kb))."""
    f = K @ b
    return lam / 2 * b @ f - np.mean(log_expit(y * f))


def batch_klr(K, y, lam):
    """Return the coefficients of batch kernel logistic regression by Newton's method with step halving."""
    n, b = len(y), np.zeros(len(y))
    for _ in range(200):
        f = K @ b
        s = expit(-y * f)
        w = s * (1 - s)
        step = np.linalg.solve(w[:, None] * K + n * lam * np.eye(n), w * f + y * s) - b
        while batch_objective(K, y, b + step, lam) > batch_objective(K, y, b, lam) + 1e-15:
            step /= 2
        b = b + step
        if np.max(np.abs(step)) <= 1e-13 * (1 + np.max(np.abs(b))):
            break
    return b


def import_vectors(K, y, lam, n_rounds):
    """Return (rows, coefficients, objective) of the import vector machine, trying every candidate row."""
    n, chosen, f, best = len(y), [], np.zeros(len(y)), None
    for _ in range(n_rounds):
        s = expit(-y * f)
        w, tried = s * (1 - s), []
        for i in sorted(set(range(n)) - set(chosen)):
            rows = [*chosen, i]
            A, G = K[:, rows], K[np.ix_(rows, rows)]
            a = np.linalg.solve(A.T @ (w[:, None] * A) + n * lam * G, A.T @ (w * f + y * s))
            value = lam / 2 * a @ G @ a - np.mean(log_expit(y * (A @ a)))
            tried.append((rows, a, value))
        best = tried[first_within([value for *_, value in tried], min(value for *_, value in tried))]
        chosen, f = best[0], K[:, best[0]] @ best[1]
    return best


def l1_objective(w, b, Z, y, lam):
    """Return F of Qin et al. (2011), equation 2, with an intercept, for features Z (N, D)."""
    return sum(np.logaddexp(0, -y[i] * (w @ Z[i] + b)) for i in range(len(y))) + lam * np.sum(np.abs(w))


def l1_optimum(Z, y, lam, intercept):
    """Return the w and b that minimize F, by L-BFGS-B on w = u - v with u, v >= 0."""
    D = Z.shape[1]

    def value_and_slope(p):
        w = p[:D] - p[D : 2 * D]
        f = Z @ w + (p[-1] if intercept else 0)
        slope = -y * expit(-y * f)
        g = Z.T @ slope
        value = np.sum(np.logaddexp(0, -y * f)) + lam * np.sum(p[: 2 * D])
        return value, np.concatenate([g + lam, -g + lam, [slope.sum()] if intercept else []])

    bounds = [(0, None)] * (2 * D) + [(None, None)] * intercept
    options = {"ftol": 0, "gtol": 1e-10, "maxiter": 100_000, "maxfun": 100_000, "maxcor": 30}
    p = minimize(value_and_slope, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return p[:D] - p[D : 2 * D], (p[-1] if intercept else 0.0)


def l1_gap(w, b, Z, y, lam, intercept):
    """Return the duality gap of Koh, Kim and Boyd."""
    t = np.array([expit(-y[i] * (w @ Z[i] + b)) for i in range(len(y))])
    if intercept:
        positive, negative = np.sum(t[y > 0]), np.sum(t[y < 0])
        t[y > 0] *= min(1, negative / positive)
        t[y < 0] *= min(1, positive / negative)
    norm = np.max(np.abs(Z.T @ (y * t)))
    theta = (1 if norm == 0 else min(1, lam / norm)) * t
    dual = -sum(a * np.log(a) if a > 0 else 0 for a in theta) - sum((1 - a) * np.log1p(-a) for a in theta if a < 1)
    return l1_objective(w, b, Z, y, lam) - dual


def sgd_c(Z, y, lam, order, eta0=0.5, free=()):
    """Return w after algorithm 4 of Qin et al. (2011) on the rows of Z in the given order.

    The last weights begin with the values `free`, and have no penalty.
    """
    N, D = Z.shape
    u, w, q, h = 0.0, np.append(np.zeros(D - len(free)), free), np.zeros(D), np.zeros(D)
    for k, i in enumerate(order, 1):
        eta = eta0 * 2 ** (-k / N)
        u += eta * lam / N
        g = -y[i] * expit(-y[i] * (w @ Z[i])) * Z[i]
        h = g if k == 1 else (k - 1) / k * g + h / k
        w = w - eta * h
        for j in range(D - len(free)):
            z = w[j]
            if z > 0:
                w[j] = max(0, z - (u + q[j]))
            elif z < 0:
                w[j] = min(0, z + (u - q[j]))
            q[j] += w[j] - z
    return w


def fourier_features(X, n_components, gamma, seed):
    """Return Z (n, D), whose inner products of rows approximate exp(-gamma ||x - x'||^2) for X (n, d)."""
    random = np.random.RandomState(seed)
    omega = np.sqrt(2 * gamma) * random.standard_normal((X.shape[1], n_components))
    phase = random.uniform(0, 2 * np.pi, n_components)
    return np.sqrt(2 / n_components) * np.cos(np.asarray(X, dtype=np.float64) @ omega + phase)


def descent(Z, y, eta, loss, weights):
    """Return the last w, the average w before each example, and the numbers of mistakes and updates."""
    w, total, mistakes, updates = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), 0, 0
    for z, label, weight in zip(Z, y, weights, strict=True):
        total += w
        f = np.sum(w * z)
        mistakes += label * f <= 0
        step = -eta * weight * loss_derivative(loss, label, f)
        updates += step != 0
        w = w + step * z
    return w, total / len(Z), mistakes, updates


def nogd(K, Y, budget, rank, eta, loss, weights):
    """Run NOGD for several functions, one per row of labels Y (M, T), that share support vectors.

    K (T, T) are the kernel values of the examples.  Returns the indices of the support vectors, the coefficients (M, n)
    of the last and of the average functions, and the numbers of mistakes and updates.
    """
    places, mistakes, updates, P = [], 0, 0, None
    a, total = np.zeros(Y.shape), np.zeros(Y.shape)  # coefficients of all examples, and their sum over the steps
    w = None
    for t in range(len(K)):
        if P is not None:
            a[:, places] = w @ P.T
        total += a
        f = a @ K[:, t]
        steps = [-eta * weights[t] * loss_derivative(loss, y, value) for y, value in zip(Y[:, t], f, strict=True)]
        mistakes += np.sum(Y[:, t] * f <= 0)
        updates += np.count_nonzero(steps)
        if P is not None:
            w = w + np.outer(steps, P.T @ K[places, t])
        elif np.any(steps):
            a[:, t] = steps
            places.append(t)
            if len(places) == budget:
                P, inverse = nystroem(K[np.ix_(places, places)], rank)
                w = a[:, places] @ inverse
    if P is not None:
        a[:, places] = w @ P.T
    return places, a[:, places], total[:, places] / len(K), mistakes, updates


def nystroem(K, rank):
    """Return V_k D_k^-1/2 and V_k D_k^1/2 (B, k) for the largest eigenvalues of K = V D V'."""
    values, vectors = np.linalg.eigh(K)
    largest = np.argsort(values)[::-1][:rank]
    D, V = values[largest], vectors[:, largest]
    return V / np.sqrt(D), V * np.sqrt(D)
