"""L1-regularised kernel logistic regression (Qin et al., 2011): one file per solver."""
