"""Where a stage of a fit ends: at a duality gap, or at an objective that another solver has reached (section 4.2.1)."""

from __future__ import annotations

from collections import deque

REFERENCES = ("prox_newton", "cgd", "multiscale_fista", "fista")
"""Solvers that can find the reference objective: those that know when they are done."""
CHECKS, WITHIN = 20, 0.01
"""SGD-C ends where the mean of its last CHECKS objectives is within this share of the reference (footnote 1)."""
CHECKS_IN_A_PASS = 10
"""The paper takes an objective after each example, which costs a pass over the rows; here there are ten a pass."""


def by_gap(tol):
    """Return a rule that ends at an iterate whose gap is at most tol times its objective."""
    return lambda iterate: iterate.reaches(tol)


def at_objective(reference):
    """Return a rule that ends at an iterate with this objective or a smaller one."""
    return lambda iterate: iterate.objective <= reference


def at_mean_objective(reference):
    """Return a rule that ends where the mean of the last objectives is near the reference."""
    last = deque(maxlen=CHECKS)

    def ends(iterate):
        last.append(iterate.objective)
        return len(last) == CHECKS and abs(sum(last) / CHECKS / reference - 1) <= WITHIN

    return ends
