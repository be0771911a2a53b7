"""Online gradient descent on features whose products approximate a kernel; its memory does not grow with the rows."""
