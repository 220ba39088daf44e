"""QMI: k-means of label rows that maximises the category utility."""

from typing import Any

from gpuens.methods.kcc import KCC


class QMI(KCC):
    """Quadratic mutual information: k-means on one-hot labels, KCC with the category utility U_c.

    The paper first centres the one-hot columns, which shifts all objects equally and changes no distance. Missing
    labels are left out.

    Parameters and attributes are those of `gpuens.KCC`.

    References
    ----------
    Topchy, Jain & Punch, "Combining multiple weak clusterings", ICDM 2003.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.QMI(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G M k"
    utility, p, normalised = "uc", 5.0, False

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weights: Any = None,
        n_init: int = 5,
        max_iter: int = 20,
        tol: float = 1e-5,
        random_state: Any = 0,
        reduction: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters, self.weights, self.n_init, self.max_iter, self.tol = n_clusters, weights, n_init, max_iter, tol
        self.random_state, self.reduction, self.device = random_state, reduction, device
