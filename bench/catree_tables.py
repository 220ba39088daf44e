"""What the CA-tree paper prints: its data sets, exponents, ratios, times and accuracies."""

from typing import NamedTuple


class Printed(NamedTuple):
    """A data set of Tables II to IV: objects and bounds of k in its experiments, N to fit exponents over."""

    n_objects: int
    n_clusters: int
    k: tuple[int, int]
    n_range: tuple[int, int]
    ratio: float  # the least N_Z / N_Z* over τ, §IV-F
    alphas: dict[float, tuple[float, ...]]  # γ -> the exponents at TAUS


TAUS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of H

DATA_SETS = {
    "Spherical5": Printed(
        250, 5, (4, 10), (250, 4000), 0.433,
        {1.0: (0.73, 0.64, 0.55, 0.46, 0.42, 0.38, 0.32), 0.9: (0.65, 0.42, 0.25, 0.20, 0.17, 0.16, 0.12)},
    ),
    "Half-rings": Printed(
        800, 2, (8, 20), (400, 6400), 0.557,
        {1.0: (0.40, 0.23, 0.18, 0.17, 0.16, 0.12, 0.16), 0.9: (0.22, 0.12, 0.09, 0.06, 0.06, 0.06, 0.04)},
    ),
    "3-rings": Printed(
        900, 3, (20, 50), (450, 7200), 0.671,
        {1.0: (0.40, 0.18, 0.10, 0.07, 0.05, 0.03, 0.02), 0.9: (0.26, 0.13, 0.07, 0.05, 0.03, 0.02, 0.02)},
    ),
    "8d5k": Printed(
        1000, 5, (4, 10), (63, 1000), 0.506,
        {1.0: (0.63, 0.42, 0.18, 0.08, 0.03, 0.01, 0.01), 0.9: (0.51, 0.28, 0.13, 0.08, 0.04, 0.02, 0.02)},
    ),
    "Opt-digits": Printed(
        3823, 10, (10, 40), (239, 3823), 0.267,
        {1.0: (0.63, 0.50, 0.42, 0.38, 0.35, 0.32, 0.28), 0.9: (0.54, 0.26, 0.07, 0.00, 0.00, 0.00, 0.01)},
    ),
    "Pen-digits": Printed(
        10_992, 10, (10, 40), (687, 10_992), 0.189,
        {1.0: (0.57, 0.52, 0.47, 0.43, 0.40, 0.37, 0.34), 0.9: (0.28, 0.14, 0.10, 0.09, 0.09, 0.09, 0.08)},
    ),
}  # fmt: skip

NODES_AT_HALF = {"Half-rings": 21, "3-rings": 55}  # N_Z(H/2), §IV-C

# Table V, H = 10: (t_CE in seconds, Q) of settings A to D
TABLE_V = {
    "Spherical5": {
        "EAC": ((111.29, 0.95), (0.94, 0.95), (0.11, 0.95), (0.06, 0.94)),
        "CSPA": ((7.51, 0.95), (0.43, 0.95), (0.16, 0.94), (0.12, 0.92)),
        "HBGF": ((0.26, 0.95), (0.18, 0.95), (0.14, 0.95), (0.13, 0.93)),
        "MCLA": ((0.22, 0.95), (0.16, 0.95), (0.14, 0.95), (0.15, 0.94)),
    },
    "3-rings": {
        "EAC": ((82.02, 1.00), (0.54, 1.00), (0.10, 1.00), (0.08, 0.99)),
        "CSPA": ((3.88, 0.74), (0.27, 0.74), (0.13, 0.76), (0.13, 0.75)),
        "HBGF": ((0.26, 0.78), (0.19, 0.77), (0.15, 0.77), (0.15, 0.78)),
        "MCLA": ((2.68, 0.77), (1.02, 0.77), (0.77, 0.76), (0.72, 0.76)),
    },
}
OBJECTS_V = {"Spherical5": 2000, "3-rings": 1800}
C_TO_D = 0.61 / 0.09  # t_CE of EAC on Spherical5 with N = 10,000
