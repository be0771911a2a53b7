"""Online gradient descent on features that approximate a kernel, with constant memory."""
