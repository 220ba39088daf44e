"""k-means of points: features of objects (`nested`), and weighted points such as embedded rows (`weighted`).

Both draw their first centers by `plus_plus` and move them by `lloyd.descend`, on the CPU or on a device.
"""
