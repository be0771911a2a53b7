"""
Learned prototypes
==================

The support vectors of most kernel methods are training rows.  :class:`~klr_bench.PrototypeKLR` learns its points
together with their coefficients and the width of the kernel, by gradient methods.  For images, the learned points can
be shown as images as well.
"""

# %%
# The data are handwritten digits of 8 x 8 pixels in ten classes.  With J points the classifier is a softmax of ten sums
# of J kernel values.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from klr_bench import PrototypeKLR

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0, stratify=y)

# %%
# For each number of points there are two models, which start from the same random training rows.  With
# ``learn_prototypes=False`` the points stay fixed, and only the coefficients and the width are learned.

sizes = [4, 6, 8, 10, 15, 20, 30, 40]
accuracy = {True: [], False: []}
models = {}
for J in sizes:
    for learned in accuracy:
        model = PrototypeKLR(J, learn_prototypes=learned, l2=3e-4, tol=1e-2, max_iter=300, random_state=0)
        models[J, learned] = model.fit(X_train, y_train)
        accuracy[learned].append(100 * model.score(X_test, y_test))
    print(f"{J:3} points: {accuracy[False][-1]:.1f} % with fixed rows, {accuracy[True][-1]:.1f} % with learned points")

# %%
# The images show ten points before and after learning.  Below each learned point is the digit with the largest
# coefficient.  Learned points need not look like digits, because a point may be used for several digits; pixels outside
# the range of the data are white or black.

SHOWN = 10
before, after = models[SHOWN, False].prototypes_, models[SHOWN, True].prototypes_
votes = models[SHOWN, True].classes_[np.argmax(models[SHOWN, True].dual_coef_, axis=0)]

fig = plt.figure(figsize=(7.5, 6.3), layout="constrained")
top, bottom = fig.subfigures(2, 1, height_ratios=[1, 1.7])
axes = top.subplots(2, SHOWN)
for column in range(SHOWN):
    for row, points in enumerate((before, after)):
        axes[row, column].imshow(points[column].reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
        axes[row, column].set(xticks=[], yticks=[])
    axes[1, column].set_xlabel(f"{votes[column]}", fontsize=12)
axes[0, 0].set_ylabel("rows")
axes[1, 0].set_ylabel("learned")
top.suptitle(f"{SHOWN} points before and after learning")

ax = bottom.subplots()
ax.plot(sizes, accuracy[True], "-o", color="#0072B2", label="learned points")
ax.plot(sizes, accuracy[False], "--s", color="#D55E00", label="fixed training rows")
ax.set(xlabel="Number of points J", ylabel="Test accuracy (%)", title="Accuracy on digits")
ax.grid(color="#e4e4e4")
ax.legend(loc="lower right")
plt.show()
