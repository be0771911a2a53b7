"""L1-regularized kernel logistic regression (Qin et al., 2011), with one module per solver."""
