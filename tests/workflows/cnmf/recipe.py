"""The recipe of cnmf.npz: what the authors' program cNMF gives on drawn counts.

    python3 -m venv /tmp/cnmf && /tmp/cnmf/bin/pip install cnmf==1.7.1
    /tmp/cnmf/bin/python tests/workflows/cnmf/recipe.py

data (90, 30): normalised counts. For each k: spectra_k (12 k, 30), the programs of 12 runs; density_k; stats_k (k,
threshold, silhouette, error), those of the plot that selects k; consensus_k_THRESHOLD, the medians.
"""

import tempfile
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scanpy
from cnmf import cNMF
from cnmf.cnmf import load_df_from_npz

N_OBJECTS, N_FEATURES, N_PROGRAMS, N_RUNS = 90, 60, 4, 12
KS, THRESHOLDS = (4, 6), (0.5, 0.15)


def drawn_counts() -> anndata.AnnData:
    rng = np.random.default_rng(0)
    programs = rng.gamma(0.3, 1.0, (N_PROGRAMS, N_FEATURES)) + 0.01
    programs /= programs.sum(axis=1, keepdims=True)
    usages = rng.dirichlet(np.full(N_PROGRAMS, 0.5), N_OBJECTS)
    counts = pd.DataFrame(rng.poisson(200 * usages @ programs).astype(np.float64))
    counts.index, counts.columns = counts.index.map("c{}".format), counts.columns.map("g{}".format)
    return anndata.AnnData(counts.loc[:, counts.sum() > 0])


def main() -> None:
    arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "counts.h5ad")
        drawn_counts().write(path)
        run = cNMF(output_dir=folder, name="small")
        run.prepare(counts_fn=str(path), components=list(KS), n_iter=N_RUNS, seed=14, num_highvar_genes=30)
        run.factorize(worker_i=0, total_workers=1)
        run.combine()
        normalised = scanpy.read(run.paths["normalized_counts"])
        arrays["data"] = np.asarray(normalised.X.todense() if hasattr(normalised.X, "todense") else normalised.X)
        for k in KS:
            arrays[f"spectra_{k}"] = load_df_from_npz(run.paths["merged_spectra"] % k).to_numpy()
            stats = run.consensus(
                k, skip_density_and_return_after_stats=True, show_clustering=False, norm_counts=normalised
            )
            arrays[f"stats_{k}"] = stats["stats"].to_numpy(dtype=np.float64)
            for threshold in THRESHOLDS:
                run.consensus(k, density_threshold=threshold, show_clustering=False, build_ref=False)
                name = str(threshold).replace(".", "_")
                medians = load_df_from_npz(run.paths["consensus_spectra"] % (k, name))
                arrays[f"consensus_{k}_{threshold}"] = medians.to_numpy()
            arrays[f"density_{k}"] = load_df_from_npz(run.paths["local_density_cache"] % k).to_numpy()[:, 0]
    np.savez_compressed(Path(__file__).with_name("cnmf.npz"), **arrays)


if __name__ == "__main__":
    main()
