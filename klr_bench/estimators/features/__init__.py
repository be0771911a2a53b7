"""Online gradient descent in constant memory, on features that approximate a kernel."""
