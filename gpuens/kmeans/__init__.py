"""k-means of points: of objects with features (`nested`), and of weighted points such as embedded rows (`weighted`).

Both draw the first centers by `plus_plus` and move centers by `lloyd.descend`, on the CPU or on a GPU.
"""
