"""k-means of objects with features (`nested`), and k-means of weighted points such as embedded rows (`weighted`).

Both modules choose the initial centers by `plus_plus` and move the centers by `lloyd.descend`, on the CPU or on a GPU.
"""
