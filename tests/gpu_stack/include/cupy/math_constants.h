// Constants of the device. CuPy includes this header, but uses no constant of it here.
