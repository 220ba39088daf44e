"""The base of the package: devices, kernels, argument checks, errors, options and progress."""
