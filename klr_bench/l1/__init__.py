"""L1-regularised kernel logistic regression (Qin et al., 2011): one problem, one matrix, a file a solver."""

from klr_bench.l1.estimator import L1KLR
from klr_bench.l1.path import l1_path, lambda_max
from klr_bench.l1.peers import L1Peer

__all__ = ["L1KLR", "L1Peer", "l1_path", "lambda_max"]
