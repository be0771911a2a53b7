"""L1-regularised kernel logistic regression (Qin et al., 2011): one problem, one matrix, one file per solver."""
