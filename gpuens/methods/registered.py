"""The registry of the named methods: their names and the files of their estimators, which are loaded on first use."""

from gpuens.runtime.registry import Registry

# names of methods for `consensus` and the command line, with their estimators
_METHODS = {
    "best-of-k": "BestOfK",
    "cgc": "CgC",
    "crc-c": "CrCC",
    "crc-ia": "CrCIa",
    "cspa": "CSPA",
    "drec": "DREC",
    "eac": "EAC",
    "ecc": "ECC",
    "ecpcs-hc": "ECPCSHC",
    "ecpcs-mc": "ECPCSMC",
    "ecrmc": "ECRMC",
    "em": "EM",
    "gp-mgla": "GPMGLA",
    "hbgf": "HBGF",
    "hgpa": "HGPA",
    "kcc": "KCC",
    "lce": "LCE",
    "limbo": "LIMBO",
    "lwea": "LWEA",
    "lwgp": "LWGP",
    "mcla": "MCLA",
    "median": "Median",
    "oc-h": "OCH",
    "oc-ia": "OCIa",
    "pd": "PD",
    "pta": "PTA",
    "ptgp": "PTGP",
    "qmi": "QMI",
    "rock": "ROCK",
    "s-cce": "SCCE",
    "scec": "SCEC",
    "sec": "SEC",
    "tome": "TOME",
    "voting": "Voting",
    "weac": "WEAC",
}
CONNECTED = ("eac", "lwea", "weac")  # methods that give connected clusters of objects with neighbours
ESTIMATORS = {estimator: method for method, estimator in _METHODS.items()}
REGISTRY = Registry(
    "method",
    "gpuens.methods.base:Method",
    {method: f"gpuens.methods.{method.replace('-', '_')}:{estimator}" for method, estimator in _METHODS.items()},
)
