"""ECC: k-means of label rows that minimises the entropy of the labels in each consensus cluster."""

from gpuens.methods.kcc import KCC


class ECC(KCC):
    """Entropy-based consensus clustering: KCC with the utility U_H, which minimises the entropy of labels in clusters.

    Parameters and attributes are those of `gpuens.KCC`.

    References
    ----------
    Liu et al., "Entropy-based consensus clustering for patient stratification", Bioinformatics 33 (2017) 2691-2698.

    Examples
    --------
    >>> import gpuens as ge
    >>> labels = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1]]
    >>> ge.ECC(n_clusters=2).fit_predict(labels).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    cost = "G M k"
    utility, p, normalised = "uh", 5.0, False
