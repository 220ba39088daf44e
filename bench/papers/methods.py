"""The methods of the papers by the papers' names: their own methods and those with which they compare."""

from typing import Any

import gpuens as ge
from gpuens.workflows.compare import default_estimator

# the name in gpuens, and the parameters that differ from the defaults
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "LWEA": ("lwea", {}),
    "LWGP": ("lwgp", {}),
    "ECRMC": ("ecrmc", {}),
    "EAC": ("eac", {}),
    "WEAC": ("weac", {}),
    "GP-MGLA": ("gp-mgla", {}),
    "WCT": ("lce", {}),
    "LB-P": ("lce", {"post": "pam"}),
    "LB-S": ("lce", {"post": "spectral"}),
    "TOME": ("tome", {}),
    "PTA": ("pta", {}),
    "PTGP": ("ptgp", {}),
    "ECPCS-HC": ("ecpcs-hc", {}),
    "ECPCS-MC": ("ecpcs-mc", {}),
    "CSPA": ("cspa", {}),
    "HGPA": ("hgpa", {}),
    "MCLA": ("mcla", {}),
    "HBGF": ("hbgf", {}),
    "HBGF-METIS": ("hbgf", {"partition": "metis"}),
    "QMI": ("qmi", {}),
    "PD": ("pd", {}),
    "EM": ("em", {}),
    "KCC": ("kcc", {}),
    "normalised KCC": ("kcc", {"normalised": True}),
    "ECC": ("ecc", {}),
    "SEC": ("sec", {}),
    "ROCK": ("rock", {}),
    "LIMBO": ("limbo", {}),
    "CgC": ("cgc", {}),
    "OC-Ia": ("oc-ia", {}),
    "OC-H": ("oc-h", {}),
    "CrC-Ia": ("crc-ia", {}),
    "CrC-C": ("crc-c", {}),
    "S-CCE": ("s-cce", {}),
}


def estimator(method: str, k: int | None, seed: int, **parameters: Any) -> Any:
    name, own = METHODS[method]
    return default_estimator(name, k, seed, "auto").set_params(**own, **parameters)


def consensus(method: str, ensemble: ge.Ensemble, k: int, seed: int, **features: Any) -> Any:
    """Return the labels of all objects."""
    return estimator(method, k, seed).fit(ensemble, **features).labels_
