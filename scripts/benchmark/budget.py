"""Time of learners with a budget, ALMA and DUOL, compared with compiled loops."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numba import njit
from timing import ONE_PASS, best, paper_data

from klr_bench import (
    ALMA,
    BOGD,
    BSGD,
    DUOL,
    NORMA,
    BOGDPlusPlus,
    BudgetOSKL,
    Forgetron,
    Projectron,
    ProjectronPlusPlus,
    RandomizedBudgetPerceptron,
)
from klr_bench.estimators.budget.duol import both_steps


@njit(fastmath=True)
def kernel_row(X, members, n, t, gamma, row):
    for j in range(n):
        distance = row[0] - row[0]  # in the precision of the row
        for k in range(X.shape[1]):
            distance += (X[t, k] - X[members[j], k]) ** 2
        row[j] = math.exp(-gamma * distance)


@njit(fastmath=True)
def value_of(coef, row, n):
    f = 0.0
    for j in range(n):
        f += coef[j] * row[j]
    return f


@njit(fastmath=True)
def backward(factor, n, w):
    for i in range(n - 1, -1, -1):
        w[i] /= factor[i, i]
        for j in range(i):
            w[j] -= w[i] * factor[i, j]


@njit(fastmath=True)
def forgetron(X, y, u, gamma, budget):
    n, turn, ever, squared = 0, 0, 0, 0.0
    members, coef, row = np.zeros(budget + 1, np.int64), np.zeros(budget + 1), np.zeros(budget + 1, np.float32)
    bound = math.sqrt((budget + 1) / math.log(budget + 1)) / 4
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        f = value_of(coef, row, n)
        if y[t] * f > 0.0:
            continue
        ever += 1
        squared += 2.0 * y[t] * f + 1.0
        phi = min((budget + 1) ** (-0.5 / (budget + 1)), bound / math.sqrt(squared))
        squared *= phi * phi
        for j in range(n):
            coef[j] *= phi
        if n < budget:
            members[n], coef[n] = t, phi * y[t]
            n += 1
            continue
        oldest = turn % budget
        kernel_row(X, members, n, members[oldest], gamma, row)
        f_oldest = value_of(coef, row, n)
        distance = np.float32(0)
        for k in range(X.shape[1]):
            distance += (X[t, k] - X[members[oldest], k]) ** 2
        f_oldest += phi * y[t] * math.exp(-gamma * distance)
        squared += coef[oldest] ** 2 - 2.0 * coef[oldest] * f_oldest
        members[oldest], coef[oldest] = t, phi * y[t]
        turn += 1
    return ever


@njit(fastmath=True)
def rbp(X, y, u, gamma, budget):
    n, ever = 0, 0
    members, coef, row = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget, np.float32)
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        if y[t] * value_of(coef, row, n) > 0.0:
            continue
        ever += 1
        slot = n if n < budget else int(u[t] * budget)
        n = min(n + 1, budget)
        members[slot], coef[slot] = t, y[t]
    return ever


@njit(fastmath=True)
def bogd(X, y, u, gamma, budget, by_length):
    n, ever, lam = 0, 0, 1.0 / len(y) ** 2
    members, coef, row = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget, np.float32)
    p = np.full(budget, 1.0 / budget)
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        f = value_of(coef, row, n)
        for j in range(n):
            coef[j] *= 1.0 - lam
        if y[t] * f >= 1.0:
            continue
        ever += 1
        slot = n
        if n == budget:
            slot = int(u[t] * budget)
            if by_length:
                total = 0.0
                for j in range(n):
                    total += abs(coef[j])
                weights = 0.0
                for j in range(n):
                    p[j] = max(0.0, 1.0 - (budget - 1) / total * abs(coef[j]))
                    weights += p[j]
                target = u[t]
                for j in range(n):
                    p[j] /= weights
                for j in range(n):
                    target -= p[j]
                    if target < 0.0:
                        slot = j
                        break
            for j in range(n):
                coef[j] = math.copysign(min(abs(coef[j]) / (1.0 - p[j]), 1.0), coef[j])
        n = min(n + 1, budget)
        members[slot], coef[slot] = t, y[t]
    return ever


@njit(fastmath=True)
def bsgd(X, y, u, gamma, budget):
    n, ever, lam = 0, 0, 1e-4
    members, coef, row = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget, np.float32)
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        z = y[t] * value_of(coef, row, n)
        for j in range(n):
            coef[j] *= 1.0 - 1.0 / (t + 1)
        if z >= 1.0:
            continue
        ever += 1
        slot = n
        if n == budget:
            slot = 0
            for j in range(1, n):
                nearly = abs(coef[slot]) * 1e-9
                less = abs(coef[j]) - abs(coef[slot])
                if less < -nearly or (less <= nearly and members[j] < members[slot]):
                    slot = j
        n = min(n + 1, budget)
        members[slot], coef[slot] = t, y[t] / (lam * (t + 1))
    return ever


@njit(fastmath=True)
def golden_section(a, b, distance):
    low, high, golden = 0.0, 1.0, 0.6180339887498949
    weights = np.zeros(2)
    while high - low > 0.01:  # coarse search
        places = (high - golden * (high - low), low + golden * (high - low))
        for side in range(2):
            h = places[side]
            weights[side] = a * math.exp(-distance * (1.0 - h) ** 2) + b * math.exp(-distance * h * h)
        if weights[0] > weights[1]:
            high = places[1]
        else:
            low = places[0]
    return 0.5 * (low + high), weights.max()


@njit(fastmath=True)
def bsgd_merging(X, y, u, gamma, budget):
    n, ever, lam = 0, 0, 1e-4
    points, coef = np.zeros((budget + 1, X.shape[1]), np.float32), np.zeros(budget + 1)
    row = np.zeros(budget + 1, np.float32)
    for t in range(len(y)):
        for j in range(n):
            distance = row[0] - row[0]
            for k in range(X.shape[1]):
                distance += (X[t, k] - points[j, k]) ** 2
            row[j] = math.exp(-gamma * distance)
        z = y[t] * value_of(coef, row, n)
        for j in range(n):
            coef[j] *= 1.0 - 1.0 / (t + 1)
        if z >= 1.0:
            continue
        ever += 1
        points[n], coef[n] = X[t], y[t] / (lam * (t + 1))
        n += 1
        if n <= budget:
            continue
        m = 0
        for j in range(1, n):
            if abs(coef[j]) < abs(coef[m]):
                m = j
        for j in range(n):
            row[j] = 0.0
            for k in range(X.shape[1]):
                row[j] += (points[m, k] - points[j, k]) ** 2
        a, found, best, best_h, best_weight = abs(coef[m]), -1, math.inf, 0.0, 0.0
        for j in range(n):
            if j != m and coef[j] * coef[m] > 0.0:
                b, distance = abs(coef[j]), gamma * row[j]
                h, weight = golden_section(a, b, distance)
                left = a * a + b * b + 2.0 * a * b * math.exp(-distance) - weight * weight
                if left < best:
                    found, best, best_h, best_weight = j, left, h, weight
        if found >= 0:
            for k in range(X.shape[1]):
                points[found, k] = best_h * points[m, k] + (1.0 - best_h) * points[found, k]
            coef[found] = math.copysign(best_weight, coef[m])
        n -= 1
        points[m], coef[m] = points[n], coef[n]
    return ever


@njit(fastmath=True)
def bsgd_projection(X, y, u, gamma, budget):
    n, ever, lam = 0, 0, 1e-4
    members, coef, row = np.zeros(budget + 1, np.int64), np.zeros(budget + 1), np.zeros(budget + 1)
    factor, w, q = np.zeros((budget + 1, budget + 1)), np.zeros(budget + 1), np.zeros(budget + 1)  # K = L L'
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        z = y[t] * value_of(coef, row, n)
        for j in range(n):
            coef[j] *= 1.0 - 1.0 / (t + 1)
        if z >= 1.0:
            continue
        c, away, p = y[t] / (lam * (t + 1)), 1.0, n
        for i in range(n):
            w[i] = (row[i] - value_of(w, factor[i], i)) / factor[i, i]
            away -= w[i] * w[i]
        inside = away <= 1e-10
        if n == budget and not inside:
            p = 0
            for j in range(1, n):
                if abs(coef[j]) < abs(coef[p]) * (1.0 - 1e-9):
                    p = j
            inside = abs(c) < abs(coef[p]) * (1.0 - 1e-9)
        if inside:
            backward(factor, n, w)
            for i in range(n):
                coef[i] += c * w[i]
            continue
        for i in range(n):
            factor[n, i] = w[i]
        factor[n, n], members[n], coef[n] = math.sqrt(away), t, c
        n += 1
        ever += 1
        if n <= budget:
            continue
        for i in range(n):  # column p of the inverse of K
            q[i] = ((1.0 if i == p else 0.0) - value_of(q, factor[i], i)) / factor[i, i] if i >= p else 0.0
        backward(factor, n, q)
        share = coef[p] / q[p]
        n -= 1
        for i in range(n):
            coef[i] = coef[i] - share * q[i] if i < p else coef[i + 1] - share * q[i + 1]
        for i in range(p, n):
            members[i] = members[i + 1]
            for j in range(i + 2):
                factor[i, j] = factor[i + 1, j]
        for j in range(p, n):  # rotations of columns j and j + 1
            length = math.hypot(factor[j, j], factor[j, j + 1])
            cosine, sine = factor[j, j] / length, factor[j, j + 1] / length
            for i in range(j, n):
                left, right = factor[i, j], factor[i, j + 1]
                factor[i, j], factor[i, j + 1] = cosine * left + sine * right, cosine * right - sine * left
    return ever


@njit(fastmath=True)
def norma(X, y, u, gamma, budget):
    n, turn, ever, eta, lam = 0, 0, 0, 0.5, 0.01
    members, coef, row = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget, np.float32)
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        z = y[t] * value_of(coef, row, n)
        for j in range(n):
            coef[j] *= 1.0 - eta * lam
        if z >= 1.0:
            continue
        ever += 1
        slot = n
        if n == budget:
            slot = turn % budget
            turn += 1
        n = min(n + 1, budget)
        members[slot], coef[slot] = t, eta * y[t]
    return ever


@njit(fastmath=True)
def alma(X, y, u, gamma, budget):
    n, squared, C = 0, 0.0, math.sqrt(2.0)
    margin = (1.0 - 0.9) * math.sqrt(8.0) / 0.9
    members, coef, row = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget, np.float32)
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        z, root = y[t] * value_of(coef, row, n), math.sqrt(n + 1)
        if z > margin / root:
            continue
        members[n], coef[n] = t, C / root * y[t]
        squared += 2.0 * C / root * z + C * C / (n + 1)
        n += 1
        if squared > 1.0:
            for j in range(n):
                coef[j] /= math.sqrt(squared)
            squared = 1.0
    return n


@njit(fastmath=True)
def budget_oskl(X, y, u, gamma, budget):
    n, eta = 0, 0.9
    members, coef, row = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget, np.float32)
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        slope = 1.0 / (1.0 + math.exp(y[t] * value_of(coef, row, n)))
        if n < budget:
            if u[t] < slope:
                members[n], coef[n] = t, eta * y[t]
                n += 1
            continue
        nearest = 0
        for j in range(1, budget):
            if row[j] > row[nearest]:
                nearest = j
        coef[nearest] += eta * slope * y[t] * row[nearest]
    return n


@njit(fastmath=True)
def projectron(X, y, u, gamma, budget, margins):
    n, eta = 0, 0.1
    members, coef, row = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget)
    factor, w = np.zeros((budget, budget)), np.zeros(budget)  # K = L L'
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        z = y[t] * value_of(coef, row, n)
        if z > 0.0 and not (margins and z < 1.0):
            continue
        length = 0.0
        for i in range(n):
            w[i] = (row[i] - value_of(w, factor[i], i)) / factor[i, i]
            length += w[i] * w[i]
        away = max(1.0 - length, 0.0)
        if z <= 0.0 and n < budget and away > 1e-10:
            for i in range(n):
                factor[n, i] = w[i]
            factor[n, n] = math.sqrt(away)
            members[n], coef[n] = t, y[t]
            n += 1
            continue
        gain = 1.0 - z - math.sqrt(away) / eta
        tau = 1.0 if z <= 0.0 else max(0.0, min((1.0 - z) / length, 2.0 * gain / length, 1.0))
        for i in range(n - 1, -1, -1):
            w[i] /= factor[i, i]
            coef[i] += tau * y[t] * w[i]
            for j in range(i):
                w[j] -= w[i] * factor[i, j]
    return n


@njit(fastmath=True)
def duol(X, y, u, gamma, budget):
    n, C, rho = 0, 1.0, 0.1
    members, coef, f = np.zeros(budget, np.int64), np.zeros(budget), np.zeros(budget)
    row, other = np.zeros(budget), np.zeros(budget)
    for t in range(len(y)):
        kernel_row(X, members, n, t, gamma, row)
        value, found, w = value_of(coef, row, n), -1, 0.0
        if 1.0 - y[t] * value <= 1e-9:
            continue
        for j in range(n):
            its = y[members[j]] * y[t] * row[j]
            if its < w * (1.0 + 1e-9) and y[members[j]] * f[j] <= 1.0 + 1e-9:
                found, w = j, its
        step = min(C, 1.0 - y[t] * value)
        if found >= 0 and w <= -rho:
            sign = y[members[found]]
            loss, room = max(1.0 - sign * f[found], 0.0), max(C - sign * coef[found], 0.0)
            step, its_step = both_steps(1.0 - y[t] * value, loss, 1.0, 1.0, w, C, room)
            kernel_row(X, members, n, members[found], gamma, other)
            coef[found] += its_step * sign
            value += its_step * sign * row[found]
            for j in range(n):
                f[j] += its_step * sign * other[j]
        for j in range(n):
            f[j] += step * y[t] * row[j]
        members[n], coef[n], f[n] = t, step * y[t], value + step * y[t]
        n += 1
    return n


METHODS = {
    "forgetron": (Forgetron, forgetron, ()),
    "rbp": (RandomizedBudgetPerceptron, rbp, ()),
    "bogd": (BOGD, bogd, (False,)),
    "bogd++": (BOGDPlusPlus, bogd, (True,)),
    "budget oskl": (BudgetOSKL, budget_oskl, ()),
    "norma": (NORMA, norma, ()),
    "bsgd": (BSGD, bsgd, ()),
    "bsgd projection": (partial(BSGD, maintenance="projection"), bsgd_projection, ()),
    "bsgd merging": (partial(BSGD, maintenance="merging"), bsgd_merging, ()),
    "projectron": (Projectron, projectron, (False,)),
    "projectron++": (ProjectronPlusPlus, projectron, (True,)),
    "alma": (ALMA, alma, ()),
    "duol": (DUOL, duol, ()),
}
BUDGETS = (414, 3443)
WITHOUT_BUDGET = (alma, duol)
IN_DOUBLE = (projectron, bsgd_projection, duol)


def measure(output):
    X, y, gamma = paper_data("magic")
    signs, u = y.astype(np.float64), np.random.RandomState(0).random_sample(len(y))
    for name, (learner_class, loop, arguments) in METHODS.items():
        for budget in BUDGETS if loop not in WITHOUT_BUDGET else (None,):
            learner = learner_class(gamma=gamma, random_state=0, **ONE_PASS)
            if budget:
                learner.set_params(budget=budget)
            room = budget or len(y)
            rows, width = (X.astype(np.float64), gamma) if loop in IN_DOUBLE else (X, np.float32(gamma))
            plain = best(lambda b=room, f=loop, r=rows, g=width, a=arguments: f(r, signs, u, g, b, *a), 3)
            ours = best(lambda learner=learner: learner.fit(X, y), 3)
            yield {
                "method": name,
                "budget": budget,
                "loop_s": plain,
                "engine_s": ours,
                "ratio": plain / ours,
                "target": 3.0,
                "inserted_by_loop": loop(rows, signs, u, width, room, *arguments),
                "inserted": learner.n_updates_,
            }
