"""Single-cell data in an AnnData: Leiden clusterings, their consensus, and the choice of the number of clusters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuens.io import annotated
from gpuens.io.columns import each_column, find_present, positions
from gpuens.labels.columns import split_columns
from gpuens.labels.ensemble import Ensemble
from gpuens.labels.joining import Source
from gpuens.labels.odd_columns import ColumnSource, separate_id_columns
from gpuens.labels.odd_labels import warn_of_odd_labels
from gpuens.methods import make_estimator, make_with_neighbors
from gpuens.runtime import checks, installing
from gpuens.runtime.defaults import METHOD
from gpuens.runtime.device import to_host
from gpuens.runtime.seeds import NOT_GIVEN, takes_rng
from gpuens.workflows.results import all_results_of, annotated_entries

if TYPE_CHECKING:
    from anndata import AnnData

    from gpuens.workflows.choice import Choice

__all__ = ["choose_k", "consensus", "ensemble", "join"]


@takes_rng
def consensus(
    adata: Any,
    keys: Any = None,
    *,
    obsm_key: str | None = None,
    n_clusters: int | None = None,
    method: str | None = None,
    key_added: str = "consensus",
    use_rep: str | None = None,
    graph: Any = None,
    coordinates: Any = None,
    groups: Any = None,
    drop_unlabelled: bool = False,
    copy: bool = False,
    rng: Any = NOT_GIVEN,
    **parameters: Any,
) -> "AnnData | None":
    """Find the consensus of the clusterings of the cells, such as Leiden at several resolutions.

    Parameters
    ----------
    adata : AnnData
    keys : name, number, pattern, or list of them, optional
        The columns of ``obs`` with base clusterings, such as ``"leiden_*"``. By default, all columns of categories and
        integers, except an earlier consensus, ids, and columns unlike the others (a batch, the truth); a warning names
        the columns left out.
    obsm_key : str, optional
        In place of keys: an entry of ``obsm`` with labels (n_obs, n_clusterings), an array or a DataFrame.
    n_clusters : int, optional
        By default, the number that `gpuens.evidence.suggestion` gives.
    method : str, optional
        A key of `gpuens.methods`; by default "lwgp", and "qmi" with neighbours.
    key_added : str
        The name of the result; an existing entry is replaced.
    use_rep : str, optional
        "X", or the entry of ``obsm`` with the features of the cells, for methods that need features.
    graph : str or anything that `gpuens.Graph.of` takes, optional
        The neighbours of the cells, such as ``"spatial_connectivities"``, an entry of ``obsp``. The consensus then is
        the domains of `gpuens.Spatial` by the method, or, for "eac", "lwea" and "weac", connected clusters.
    coordinates : str or array (n_obs, n_dimensions), optional
        In place of a graph: the places of the cells, such as ``"spatial"``, an entry of ``obsm``.
    groups : str or array (n_obs,), optional
        With coordinates: the slide of each cell, or its column of ``obs``; no edge joins two slides.
    drop_unlabelled : bool
        Leave out the cells without any label, and their edges, instead of refusing them; their consensus is missing.
    copy : bool
        Return a copy with the result instead of changing ``adata``.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    **parameters
        The method's other parameters, such as ``theta``, ``random_state`` or ``device``.

    Returns
    -------
    AnnData or None
        With ``copy=True``, an AnnData with the following entries; otherwise None, and ``adata`` gets the entries:

        - ``obs[key_added]``: the consensus, categories "0", "1", …, where "0" is the largest cluster.
        - ``obs[f"{key_added}_certainty"]``, ``obs[f"{key_added}_confidence"]`` and ``obs[f"{key_added}_margin"]``: the
          evidence for each cell's cluster, see `gpuens.evidence.objects`.
        - ``obsm[f"{key_added}_membership"]``: (n_obs, n_clusters), for methods with soft results.
        - ``uns[key_added]``: ``"params"``, the agreement with the base clusterings ("anmi", "ecs"), the means over the
          cells, and for domains ``"potts"`` and ``"effective_members"``.

    Raises
    ------
    ImportError
        Without anndata.
    ValueError, TypeError
        For missing keys, clusterings that `Ensemble` refuses, and invalid parameters.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import gpuens as ge
    >>> obs = pd.DataFrame({"leiden_1": list("aaabbb"), "leiden_2": list("aabccc")}, index=list("uvwxyz"))
    >>> adata = anndata.AnnData(np.zeros((6, 1), np.float32), obs=obs)
    >>> ge.sc.consensus(adata, "leiden_*", n_clusters=2)
    >>> adata.obs["consensus"].tolist()
    ['0', '0', '0', '1', '1', '1']

    Connected clusters of cells in a line:

    >>> adata.obsm["spatial"] = np.arange(6.0)[:, None]
    >>> ge.sc.consensus(adata, "leiden_*", n_clusters=2, method="eac", coordinates="spatial")
    >>> adata.uns["consensus"]["params"]["coordinates"]
    'spatial'
    """
    _check_annotated(adata)
    if copy and adata.isbacked:
        raise ValueError(
            "adata is backed by its file, which copy=True cannot copy; pass adata.to_memory(), or copy=False."
        )
    neighbors = {"graph": graph, "coordinates": coordinates, "groups": groups}
    neighbors = {name: value for name, value in neighbors.items() if value is not None}
    if neighbors:
        from gpuens.methods.spatial import METHOD as METHOD_OF_DOMAINS

        method = METHOD_OF_DOMAINS if method is None else method
        estimator = make_with_neighbors(method, n_clusters, parameters)
    else:
        method = METHOD if method is None else method
        estimator = make_estimator(method, n_clusters, parameters)
    if estimator.parts().needs_features != (use_rep is not None):
        instead = "name an entry of obsm, or 'X'" if use_rep is None else "leave it out"
        raise ValueError(
            f"use_rep={use_rep!r}, but method {method!r} uses {'features' if use_rep is None else 'only labels'}; "
            f"{instead}."
        )
    ensemble, labelled = _clusterings(adata, keys, obsm_key, drop_unlabelled, names=estimator.parts().gives_names)
    annotated.check_key(key_added, ensemble.names, adata.obs.index.name)
    features = None if use_rep is None else annotated.representation(adata, use_rep)
    beside: dict[str, Any] = {"features": features if features is None or labelled is None else features[labelled]}
    if neighbors:
        beside["graph"] = _graph(adata, graph, coordinates, groups, labelled)
    estimator.fit(ensemble, **beside)
    results = all_results_of(estimator, labelled)
    adata = adata.copy() if copy else adata
    named = {name: value for name, value in neighbors.items() if isinstance(value, str)}
    for place, key, value in annotated_entries(key_added, results, method, estimator, ensemble.names, named):
        getattr(adata, place)[key] = value
    return adata if copy else None


@takes_rng
def choose_k(
    adata: Any,
    keys: Any = None,
    *,
    obsm_key: str | None = None,
    use_rep: str | None = None,
    key_added: str = "choose_k",
    rng: Any = NOT_GIVEN,
    **parameters: Any,
) -> "Choice":
    """Compare numbers of clusters of the cells and suggest one, by `gpuens.choose_k`.

    Parameters
    ----------
    adata : AnnData
    keys, obsm_key
        The base clusterings, as in `consensus`.
    use_rep : str, optional
        In place of base clusterings: "X", or the entry of ``obsm`` with features of the cells, which are clustered for
        each number.
    key_added : str
        The entry of ``uns`` with ``"suggested"``, ``"reasons"``, ``"table"`` (a DataFrame with a row for each number)
        and ``"params"``; an existing entry is replaced.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    **parameters
        The other parameters of `gpuens.choose_k`, such as ``ks``, ``method``, ``null`` or ``random_state``.

    Returns
    -------
    gpuens.workflows.choice.Choice
        With the consensus for each number, ``.labels[k]``, and ``.plot()``.

    Raises
    ------
    ImportError
        Without anndata.
    ValueError, TypeError
        For missing keys, and for input that `gpuens.choose_k` refuses.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import gpuens as ge
    >>> obs = pd.DataFrame({"leiden_1": list("aaabbb"), "leiden_2": list("aabccc")}, index=list("uvwxyz"))
    >>> adata = anndata.AnnData(np.zeros((6, 1), np.float32), obs=obs)
    >>> found = ge.sc.choose_k(adata, "leiden_*", ks=[2, 3])
    >>> found.suggested == adata.uns["choose_k"]["suggested"]
    True
    """
    _check_annotated(adata)
    from gpuens.workflows.choose_k import choose_k

    if use_rep is not None and (keys is not None or obsm_key is not None):
        raise ValueError(f"use_rep={use_rep!r}: give either features, or base clusterings by keys or obsm_key.")
    annotated.check_key(key_added, (), None)
    if use_rep is None:
        labels, _ = _clusterings(adata, keys, obsm_key)
        choice = choose_k(labels, **parameters)
        about: dict[str, Any] = {"clusterings": labels.names}
    else:
        choice = choose_k(features=annotated.representation(adata, use_rep), **parameters)
        about = {"use_rep": use_rep}
    adata.uns[key_added] = annotated.chosen(choice.to_dict(), {**about, **parameters})
    return choice


@takes_rng
def ensemble(
    adata: Any,
    resolutions: float | Sequence[float] = (0.25, 0.5, 1.0, 1.5, 2.0),
    n_seeds: int = 4,
    *,
    key_added: str = "leiden",
    rng: Any = NOT_GIVEN,
    **parameters: Any,
) -> None:
    """Add Leiden clusterings of the cells' graph, at several resolutions and with several seeds, to ``adata.obs``.

    Parameters
    ----------
    adata : AnnData
        The cells with their graph, see `generate.leiden_ensemble`.
    resolutions, n_seeds
        As in `generate.leiden_ensemble`.
    key_added : str
        The new columns are ``obs[f"{key_added}_<resolution>_<seed>"]``, of categories. Existing columns with these
        names are replaced, or removed if their clustering is left out.
    rng : optional
        SciPy's name of ``random_state`` (SPEC 7); only one of both is passed.
    **parameters
        The other parameters of `generate.leiden_ensemble`, such as ``use_rep`` or ``random_state``.

    Raises
    ------
    ImportError
        Without anndata or igraph.
    ValueError, TypeError
        For input that `generate.leiden_ensemble` refuses.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import gpuens as ge
    >>> X = np.random.default_rng(0).normal(size=(90, 2)) + 9 * np.arange(90)[:, None] % 27
    >>> adata = anndata.AnnData(X, obsm={"X_pca": X})
    >>> ge.sc.ensemble(adata, (0.2, 0.5), n_seeds=2, use_rep="X_pca")
    >>> list(adata.obs)
    ['leiden_0.2_0', 'leiden_0.2_1', 'leiden_0.5_0', 'leiden_0.5_1']
    >>> ge.sc.consensus(adata, "leiden_*", n_clusters=3)
    """
    _check_annotated(adata)
    import pandas as pd

    from gpuens.generate.leiden import checked_resolutions, leiden_ensemble, names_of

    annotated.check_key(key_added, (), adata.obs.index.name)
    resolutions = checked_resolutions(resolutions)
    members = leiden_ensemble(adata, resolutions, n_seeds, **parameters)
    columns = dict(zip(members.names, to_host(members.to_array()).T, strict=True))
    column_of = dict(zip(names_of(resolutions, n_seeds), names_of(resolutions, n_seeds, key_added), strict=True))
    clusterings = {
        column_of[name]: pd.Categorical.from_codes(column, [str(c) for c in range(column.max() + 1)])
        for name, column in columns.items()
    }
    adata.obs = adata.obs.drop(columns=list(column_of.values()), errors="ignore").assign(**clusterings)


def join(mdata: Any, keys: Any = None, *, how: str = "outer", drop_unlabelled: bool = False) -> Ensemble:
    """Return the ensemble of the clusterings in all modalities of a MuData; cells are matched by name.

    A cell that a modality lacks has missing labels in its clusterings.

    Parameters
    ----------
    mdata : MuData, or mapping of name to AnnData
    keys : name, number, pattern, or list of them, optional
        The columns of each ``obs`` with base clusterings, such as ``"leiden_*"``; a modality without any of them is
        left out. By default as in `consensus`.
    how : {"outer", "inner"}
        Keep the cells of all modalities together, or only the cells that are in each.
    drop_unlabelled : bool
        Leave out cells without any label instead of refusing them.

    Returns
    -------
    Ensemble (n_cells, n_clusterings)
        ``index`` holds the names of the cells. A column name that several modalities have is preceded by the modality:
        "rna:leiden".

    Raises
    ------
    ValueError, TypeError
        For other data, keys that no modality has, and sources that `Ensemble.join` refuses.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import gpuens as ge
    >>> def cells(names, leiden):
    ...     obs = pd.DataFrame({"leiden": pd.Categorical(list(leiden))}, index=list(names))
    ...     return anndata.AnnData(np.zeros((len(names), 1), np.float32), obs=obs)
    >>> modalities = {"rna": cells("uvwx", "aabb"), "atac": cells("xwvy", "0010")}
    >>> ens = ge.sc.join(modalities)
    >>> ens.names, list(ens.index)
    (['rna:leiden', 'atac:leiden'], ['u', 'v', 'w', 'x', 'y'])
    >>> pd.Series(ge.consensus(ens, 2, method="eac"), ens.index).to_dict()
    {'u': 1, 'v': 1, 'w': 0, 'x': 0, 'y': 0}
    """
    modalities = getattr(mdata, "mod", mdata)
    if not isinstance(modalities, Mapping) or not all(hasattr(adata, "obs") for adata in modalities.values()):
        raise TypeError(
            f"mdata must be a MuData or a mapping of names to AnnData, not {type(mdata).__name__}; for other labels, "
            "use gpuens.Ensemble.join."
        )
    if getattr(mdata, "axis", 0) == 1:
        raise ValueError("mdata shares variables, not cells (axis=1); join needs modalities of the same cells.")
    single = isinstance(keys, str) or not isinstance(keys, Iterable)
    patterns = None if keys is None else list(map(str, [keys] if single else keys))
    sources = []
    for modality, adata in modalities.items():
        names = None if patterns is None else find_present(patterns, list(adata.obs.columns))
        if names != []:
            columns = split_columns(_columns(adata, names))
            about = ColumnSource(f"modality {modality!r}", "name the clusterings in keys") if keys is None else None
            sources.append(Source(columns, modality, f"modality {modality!r}", about))
    if not sources:
        there_are = [f"{modality}:{name}" for modality, adata in modalities.items() for name in adata.obs.columns]
        raise ValueError(
            f"keys: no modality has a column of {checks.listed(patterns or [])}; there are {checks.listed(there_are)}."
        )
    ensemble, _, _ = Ensemble.from_sources(sources, how, drop_unlabelled=drop_unlabelled)
    warn_of_odd_labels(ensemble.categories, ensemble.names)
    return ensemble


def _check_annotated(adata: Any) -> None:
    try:
        from anndata import AnnData
    except ImportError as error:
        raise ImportError(f"gpuens.sc needs anndata, which is not installed: {installing.command('io')}.") from error
    if not isinstance(adata, AnnData):
        raise TypeError(
            f"adata must be an AnnData, not {type(adata).__name__}; for labels, use gpuens.consensus, and for a "
            "MuData, gpuens.sc.join."
        )


def _clusterings(
    adata: Any, keys: Any, obsm_key: str | None, drop_unlabelled: bool = False, *, names: bool = False
) -> tuple[Ensemble, Any]:
    """Return the clusterings in the columns ``keys`` of obs or in an entry of obsm, and a mask of labelled cells.

    The mask is that of `Ensemble.of_labelled`. If the clusterings share ``names``, cells may be without any. Raise an
    error if both ``keys`` and ``obsm_key`` are given.
    """
    if keys is not None and obsm_key is not None:
        raise ValueError(f"keys, obsm_key={obsm_key!r}: give either columns of obs or an entry of obsm.")
    labels = _columns(adata, keys) if obsm_key is None else annotated.entry(adata.obsm, obsm_key, "obsm_key")
    source = ColumnSource("adata.obs", "name the clusterings in keys") if keys is None and obsm_key is None else None
    if obsm_key is not None and hasattr(labels, "columns"):
        source = ColumnSource(f"adata.obsm[{obsm_key!r}]", "pass its columns as an array")
    clusterings = Ensemble.from_labels(labels, None, source, drop_unlabelled=drop_unlabelled, shared_names=names)
    if not names:
        warn_of_odd_labels(clusterings[0].categories, clusterings[0].names)
    return clusterings


def _graph(adata: Any, graph: Any, coordinates: Any, groups: Any, labelled: Any) -> Any:
    """Return the `gpuens.Graph` of the labelled cells; texts are names of entries of obsp, obsm and obs."""
    from gpuens.methods.spatial import graph_of

    if isinstance(graph, str):
        graph = annotated.entry(adata.obsp, graph, "graph", "obsp")
    if isinstance(coordinates, str):
        coordinates = annotated.entry(adata.obsm, coordinates, "coordinates")
    if isinstance(groups, str):
        groups = annotated.entry(adata.obs, groups, "groups", "obs").to_numpy()
    neighbors = graph_of(adata.n_obs, adata.obs_names, graph, coordinates, groups)
    return neighbors if labelled is None or neighbors is None else neighbors.subgraph(labelled)


def _columns(adata: Any, keys: Any) -> Any:
    """Return a DataFrame of the columns of obs that ``keys`` name; by default, of all columns that may be labels."""
    obs = adata.obs
    if keys is not None:
        return obs.iloc[:, positions(keys, list(obs.columns), "keys")]
    like = obs.iloc[:, annotated.like_labels(obs, annotated.results(adata.uns), "keys")]
    places, _ = separate_id_columns(each_column(like), list(like.columns), "adata.obs", named=True, argument="keys")
    return like.iloc[:, places]


def __dir__() -> list[str]:
    return sorted(__all__)
