"""QMI: k-means of label rows that maximises the category utility."""

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
