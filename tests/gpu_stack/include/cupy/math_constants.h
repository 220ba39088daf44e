// Constants of the device: CuPy includes them and none is used here.
