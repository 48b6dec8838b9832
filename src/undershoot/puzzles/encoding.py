"""How a network sees a state: which inputs are 1."""

from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, I32, U16, States


@dataclass(frozen=True, eq=False)
class Encoding:
    """Value v on cell i switches on the inputs features[i, v, :]; -1 stands for none.

    A first layer may add the weight rows of these inputs instead of multiplying a mostly empty vector.
    """

    width: int
    features: I32
    """int32[n, m, K], numbers below `width`."""

    def dense(self, states: States) -> F32:
        """float32[B, width] of zeros and ones."""
        active = self.features[np.arange(states.shape[1]), states]
        active = active.reshape(len(states), active.shape[1] * active.shape[2])
        inputs = np.zeros((len(states), self.width + 1), dtype=np.float32)
        # Input number -1 is the spare last column, cut off below.
        np.put_along_axis(inputs, active.astype(np.int64) % (self.width + 1), 1.0, axis=1)
        return inputs[:, : self.width]


def one_hot(modulus: U16, silent: int | None = None) -> Encoding:
    """One input for every cell and value it can have; the value `silent` (a blank) has none."""
    cells, values = len(modulus), int(modulus.max())
    features = np.full((cells, values, 1), -1, dtype=np.int32)
    width = 0
    for i in range(cells):
        for v in range(int(modulus[i])):
            if v != silent:
                features[i, v, 0] = width
                width += 1
    return Encoding(width, features)
