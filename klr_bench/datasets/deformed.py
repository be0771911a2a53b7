"""Generate a data set of any size by randomly deforming images.

The method follows Loosli, Canu and Bottou (Training invariant support vector machines using selective sampling, 2007).
For a small displacement, the image moved by a field (u, v) is image + u dimage/dx + v dimage/dy, and adding a multiple
of the length of the gradient makes the strokes thicker.  The fields are smoothed white noise (Simard, Steinkraus and
Platt, 2003).  Fields and images differ from those of the published infinite MNIST.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

BLOCK = 10_000
"""Number of images generated at once."""
FIELDS = 1024
"""Number of displacement fields; each image uses one, scaled by a random factor."""
SMOOTHNESS = 4.0
"""Standard deviation, in pixels, of the filter that smooths the noise."""
SHIFT, THICKNESS = 1.0, 0.15
"""Standard deviations of the displacement (pixels) and of the multiple of the gradient's length."""
FAINTEST = 8 / 255
"""Smaller pixel values become 0, which keeps the images sparse."""


def deformed(arrays: Any, *, n_samples: int, seed: int) -> Any:
    """Build a data set from randomly deformed copies of another data set's training images.

    The images must be square.  They are returned as CSR rows; half of them belong to each class.  The same seed gives
    the same images.  `arrays` is an `Arrays`, which is not imported here so that its code is not part of the data set's
    key.  The images of a class are used in turn, so that all are used equally often.
    """
    n = arrays.n_train_official or len(arrays.y)
    side = round(arrays.X.shape[1] ** 0.5)
    if side * side != arrays.X.shape[1] or n_samples < 2 or n_samples % 2:
        message = (
            f"expected square images and an even n_samples, got {arrays.X.shape[1]} pixels and n_samples={n_samples}"
        )
        raise ValueError(message)
    images, y = np.asarray(arrays.X[:n]), np.asarray(arrays.y[:n])
    slopes = [np.gradient(images.reshape(n, side, side), axis=axis).reshape(n, -1) for axis in (1, 2)]
    fields = _fields(side, np.random.default_rng(seed))
    blocks, signs = [], []
    for number, (sign, rows) in enumerate(_blocks(y, n_samples // 2, seed)):
        random = np.random.default_rng([seed, number])
        blocks.append(_deform(images[rows], [slope[rows] for slope in slopes], fields, random))
        signs.append(np.full(len(rows), sign, dtype=np.int8))
    return replace(arrays, X=sp.vstack(blocks, format="csr"), y=np.concatenate(signs), n_train_official=None)


def _fields(side: int, random: np.random.Generator) -> Any:
    """Return random smooth displacement fields for images of `side` x `side` pixels.

    The array (2, FIELDS, side^2) contains the displacements along rows and along columns, with mean square 1.
    """
    noise = random.standard_normal((2, FIELDS, side, side))
    smooth = gaussian_filter(noise, (0, 0, SMOOTHNESS, SMOOTHNESS), mode="wrap")
    smooth /= np.sqrt(np.mean(smooth**2, axis=(2, 3), keepdims=True))
    return smooth.reshape(2, FIELDS, -1).astype(np.float32)


def _blocks(y: NDArray[np.int8], n_of_each: int, seed: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield blocks (class, row indices), with a total of `n_of_each` indices for each class."""
    for sign in (1, -1):
        rows = np.random.default_rng([seed, 0, sign + 1]).permutation(np.flatnonzero(y == sign))
        for start in range(0, n_of_each, BLOCK):
            yield sign, rows[np.arange(start, min(start + BLOCK, n_of_each)) % len(rows)]


def _deform(images: NDArray[Any], slopes: list[NDArray[Any]], fields: NDArray[Any], random: np.random.Generator) -> Any:
    n = len(images)
    choice = random.integers(0, FIELDS, (2, n))
    sizes = SHIFT * random.standard_normal((2, n, 1), dtype=np.float32)
    bent = images + THICKNESS * random.standard_normal((n, 1), dtype=np.float32) * np.hypot(*slopes)
    for direction, slope in enumerate(slopes):
        bent += sizes[direction] * fields[direction, choice[direction]] * slope
    np.clip(bent, 0.0, 1.0, out=bent)
    bent[bent < FAINTEST] = 0.0
    return sp.csr_matrix(np.round(bent * 255) / np.float32(255), dtype=np.float32)
