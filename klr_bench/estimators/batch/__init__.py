"""Solvers for kernel logistic regression that need the whole training set at once.

min_f  (lam/2) ||f||^2 + (1/n) sum_i log(1 + exp(-y_i f(x_i)))

At the solution f = sum_i b_i k(x_i, .) with b_i = y_i sigma(-z_i) / (n lam), z_i = y_i f(x_i).
"""
