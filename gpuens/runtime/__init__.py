"""What all of the package stands on: devices, kernels, checks of arguments, errors, options, progress."""
