"""The label matrix: M base clusterings of N objects in one compact array, with one numbering of all clusters."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuens.labels.codes import (
    cast_codes,
    cluster_sizes,
    codes_dtype,
    renumber_codes,
    select_columns,
    unlabelled_objects,
)
from gpuens.labels.columns import split_columns
from gpuens.labels.encoding import encode_columns, find_values
from gpuens.labels.frames import is_frame
from gpuens.labels.joining import Source, join_sources, read_sources
from gpuens.labels.long_form import looks_long, read_triples, refuse_long, triples_to_matrix
from gpuens.labels.object_names import JOIN, places_of
from gpuens.labels.odd_columns import OF_FRAME, ColumnSource, find_clusterings
from gpuens.labels.odd_labels import warn_of_odd_labels
from gpuens.runtime import checks, device

if TYPE_CHECKING:
    import pandas as pd


class Ensemble:
    """M base clusterings of the same N objects.

    Parameters
    ----------
    labels : array (n_objects, n_clusterings), DataFrame, list or dict of clusterings, or Ensemble
        Integers of any width, whole floats, booleans, strings or categories. -1, NaN, None, pandas.NA and masked
        entries are missing labels. So are the texts "-1" and "nan" if every text of the column is a number; among
        others they are clusters, with a warning. Label values need not be consecutive and are local to their
        clustering. Arrays are those of NumPy, CuPy, PyTorch and all libraries with the array API, DLPack or
        ``__cuda_array_interface__``; results return to the memory and the library of the labels. DataFrames are those
        of pandas, cuDF and all libraries that narwhals knows, such as polars (also lazy), Arrow, DuckDB and Modin;
        results for them are NumPy arrays, as in scikit-learn.

        In a list, each element is one base clustering: a column of any type; a list of sets of the members of clusters
        (networkx), or of lists if some differ in length; a dict of object to label or of cluster to members; a
        VertexClustering of igraph or a NodeClustering of cdlib. Names of members become the `index`, unless they are
        0 … n_objects - 1, and an object that a clustering lacks has a missing label there. Series whose indexes have
        the same names in different orders are brought into the order of the first. An index 0, 1, 2, … does not count
        as names. A dict has the names of the clusterings as keys.
    names : sequence, optional
        The names of the clusterings; if given, no clustering is left out. By default the column names of a DataFrame,
        else 0 … M - 1. Without names, columns of a DataFrame that are probably no clusterings are left out with a
        warning: the name says that it is a truth, a batch or ids, or it agrees with none of the others.
    wide : bool
        Rows are objects, even if an array has more clusterings than objects, or if rows look like clusterings: number
        their clusters in the order of their first objects, as draws of R do. Otherwise such labels are refused.

    Attributes
    ----------
    codes : ndarray (n_objects, n_clusterings), uint8, uint16 or uint32, columns contiguous
        Clusters of each clustering numbered 0 … k_m - 1 in the order of their label values; `missing_code` is a
        missing label.
    missing_code : int
        The largest value of ``codes.dtype``.
    categories : list of M arrays
        The label value of each cluster: ``categories[m][code]``.
    offsets : ndarray (n_clusterings + 1,), int64
        Cluster ``code`` of clustering m has the number ``offsets[m] + code`` in the ensemble.
    sizes : ndarray (n_clusters,), int64
        Objects in each cluster.
    n_objects, n_clusterings, n_clusters : int
        N, M and N_c, the number of clusters of all clusterings together.
    names : list of M names
    index : pandas Index (n_objects,) or None
        The names of the objects, if labels were a DataFrame or Series. Other data of the same objects, such as features
        or a consensus, are matched to them by name if they have an index, too.
    left_out : list
        The names of the columns of a DataFrame that were left out.

    Raises
    ------
    ValueError, TypeError
        For labels that are 1-D, empty, transposed, fractional, infinite, of different lengths, on different devices, or
        missing for a whole clustering or for an object everywhere; Series of different objects; a single clustering,
        and objects in two clusters of one. A clustering with one cluster is a warning, and so are rows that agree as
        clusterings where columns do not.

    Examples
    --------
    >>> import gpuens as ge
    >>> ens = ge.Ensemble([["b", "a", "a", None], [3, 3, 7, 7]])
    >>> ens.n_objects, ens.n_clusterings, ens.n_clusters
    (4, 2, 4)
    >>> ens.offsets.tolist(), ens.sizes.tolist()
    ([0, 2, 4], [2, 1, 2, 2])
    >>> ens.to_array().tolist()
    [[1, 0], [0, 0], [0, 1], [-1, 1]]

    Communities of a graph, the second one without the node "c":

    >>> ens = ge.Ensemble([[{"a", "b"}, {"c"}], {"b": 1, "a": 0}])
    >>> list(ens.index), ens.to_array().tolist()
    (['b', 'a', 'c'], [[0, 1], [0, 0], [1, -1]])
    """

    categories: list[np.ndarray]
    offsets: np.ndarray
    names: list[Any]
    index: Any = None  # the default also serves old pickles, which have no names of objects
    left_out: Sequence[Any] = ()
    device_kind: str  # "cpu" or "cuda": the memory of the caller's labels and of results, a `Home` with their library
    _copies: dict[str, Any]  # the codes in each memory, "cpu" or "cuda"

    def __init__(self, labels: Any, *, names: Sequence[Any] | None = None, wide: bool = False) -> None:
        if not isinstance(labels, Ensemble):
            labels, _ = Ensemble.from_labels(labels, names, wide=wide)
            warn_of_odd_labels(labels.categories, labels.names)
        self.__dict__ |= labels.__dict__
        self.names = list(labels.names) if names is None else checks.check_names(names, labels.n_clusterings)

    @classmethod
    def of_labelled(
        cls, labels: Any, *, names: Sequence[Any] | None = None, wide: bool = False
    ) -> tuple["Ensemble", np.ndarray]:
        """Return the ensemble of the objects with at least one label, and their mask (n_objects,).

        Parameters and errors: see the class.

        >>> import gpuens as ge
        >>> ens, labelled = ge.Ensemble.of_labelled([["a", None, "b"], [3, -1, 5]])
        >>> ens.n_objects, labelled.tolist()
        (2, [True, False, True])
        """
        ensemble, labelled = cls.from_labels(labels, names, drop_unlabelled=True, wide=wide)
        warn_of_odd_labels(ensemble.categories, ensemble.names)
        return ensemble, labelled

    @classmethod
    def from_labels(
        cls,
        labels: Any,
        names: Sequence[Any] | None,
        source: ColumnSource | str | None = "frame",
        *,
        drop_unlabelled: bool = False,
        shared_names: bool = False,
        wide: bool = False,
    ) -> tuple["Ensemble", Any]:
        """Return the ensemble, without warnings about texts, and the mask of its objects or None.

        ``source``: leave out columns that are no clusterings, with a warning; None keeps all, and so does "frame",
        unless labels are a DataFrame without given names. ``drop_unlabelled``: keep the objects with at least one label
        and return their mask (n_objects,); else objects without any label are refused. ``shared_names``: the
        clusterings take names from one list, so that none of these is wrong: objects without a label, and clusterings
        with one name or none. ``wide``: as in the class.
        """
        columns = split_columns(labels, names, wide=wide)
        codes, categories = encode_columns(columns.values, columns.names)
        if isinstance(source, str):
            source = OF_FRAME if names is None and is_frame(labels) else None
        names, left_out = columns.names, list(columns.left_out)
        if source is not None:
            may_be_long = len(names) == 3 and len(codes) <= len(categories[0]) * len(categories[1])
            if source is OF_FRAME and may_be_long and looks_long(columns.values[0], columns.values[1], names):
                refuse_long("labels", names, len(codes), "pass gpuens.Ensemble.from_long(labels)", source.keep)
            n_clusters = np.array([len(values) for values in categories])
            places = find_clusterings(device.to_host(codes), n_clusters, names, source, shared_names=shared_names)
            if len(places) < len(names):
                codes, categories = select_columns(codes, places, n_clusters), [categories[m] for m in places]
                left_out += [names[m] for m in np.delete(np.arange(len(names)), places)]
                names = [names[m] for m in places]
        ensemble = cls.of_codes(codes, categories, names, columns.device_kind, index=columns.index, left_out=left_out)
        return ensemble._without_unlabelled(drop_unlabelled, shared_names)

    @classmethod
    def from_long(
        cls, frame: Any, *, object: Any = None, clustering: Any = None, label: Any = None, drop_unlabelled: bool = False
    ) -> "Ensemble":
        """Return the ensemble of a table with a row for each label: the object, the clustering and the label.

        The clusterings may be annotators, whose answers are exchanged in this form. The time is linear in the rows.

        Parameters
        ----------
        frame : DataFrame
            A missing label is like no row. A row that is there twice counts once.
        object, clustering, label : name of a column, optional
            By default, columns called task, object or item; worker, annotator or rater; label, answer or rating; or
            else the three columns of the table in this order.
        drop_unlabelled : bool
            Leave out objects without any label instead of refusing them.

        Returns
        -------
        Ensemble (n_objects, n_clusterings)
            ``index`` holds the objects and ``names`` the clusterings with any label, both in the order of their first
            rows. An object has a missing label in a clustering if no row has both.

        Raises
        ------
        ValueError, TypeError, MemoryError
            For missing columns, rows without an object or a clustering, two labels of an object in one clustering, and
            more labels than memory.

        Examples
        --------
        >>> import gpuens as ge, pandas as pd
        >>> answers = [("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t1", "bob", "dog"), ("t3", "bob", "cat")]
        >>> ens = ge.Ensemble.from_long(pd.DataFrame(answers, columns=["task", "worker", "label"]))
        >>> list(ens.index), ens.names, ens.to_array().tolist()
        (['t1', 't2', 't3'], ['ann', 'bob'], [[0, 1], [1, -1], [-1, 0]])
        """
        table = triples_to_matrix(read_triples(frame, [object, clustering, label])).with_labels()
        values = [table.column(m) for m in range(len(table.clusterings))]
        # as with shared names, a clustering may have a single label, because it may know few objects
        ensemble, labelled = cls.from_labels(
            values, table.clusterings, drop_unlabelled=drop_unlabelled, shared_names=True
        )
        if not drop_unlabelled:
            checks.refuse_unlabelled(unlabelled_objects(ensemble._any_copy))
        ensemble.index = table.objects if labelled is None else table.objects[labelled]
        warn_of_odd_labels(ensemble.categories, ensemble.names)
        return ensemble

    @classmethod
    def join(
        cls, sources: Sequence[Any] | Mapping[Any, Any], how: str = "outer", *, drop_unlabelled: bool = False
    ) -> "Ensemble":
        """Return the ensemble of the clusterings of several sources, whose objects are matched by name.

        An object that a source lacks has missing labels in its clusterings. Objects are in the order of their first
        appearance in the sources. The time is linear in the total length of the sources.

        Parameters
        ----------
        sources : list, or mapping of name to source
            Series, DataFrames or ensembles. The index of each names its objects. Sources without names, whose index is
            0, 1, 2, …, are joined by position if none has names and their lengths are equal.
        how : {"outer", "inner"}
            "outer" keeps the objects of all sources together, "inner" only the objects that are in every source.
        drop_unlabelled : bool
            Leave out objects without any label instead of refusing them.

        Returns
        -------
        Ensemble (n_objects, n_clusterings)
            ``index`` holds the names of the objects. ``names`` are those of the Series and columns; a Series without a
            name is called by the key of its source, or its number in the list, and so is a Series of a mapping. If
            several sources have a clustering of one name, the key or number precedes it: "rna:leiden".

        Raises
        ------
        ValueError, TypeError
            For a name that a source gives to several objects, names in some of the sources only, different lengths
            without names, an inner join without objects, and labels that the class refuses. A source that shares no
            object with the others is a warning.

        Examples
        --------
        >>> import gpuens as ge, pandas as pd
        >>> metabat = pd.Series([1, 1, 2], index=["c1", "c2", "c3"])
        >>> maxbin = pd.Series(["x", "y", "x"], index=["c4", "c3", "c1"])
        >>> ens = ge.Ensemble.join({"metabat": metabat, "maxbin": maxbin})
        >>> ens.names, list(ens.index), ens.to_array().tolist()
        (['metabat', 'maxbin'], ['c1', 'c2', 'c3', 'c4'], [[0, 0], [0, -1], [1, 1], [-1, 0]])
        >>> list(ge.Ensemble.join([metabat, maxbin], how="inner").index)
        ['c1', 'c3']
        """
        ensemble, _, _ = cls.from_sources(read_sources(sources), how, drop_unlabelled=drop_unlabelled)
        warn_of_odd_labels(ensemble.categories, ensemble.names)
        return ensemble

    @classmethod
    def from_sources(
        cls, sources: Sequence[Source], how: str, *, drop_unlabelled: bool = False
    ) -> tuple["Ensemble", Any, Any]:
        """Return the ensemble of joined sources, the mask of its objects or None, and the names of all objects or None.

        There are no warnings about texts. ``drop_unlabelled``: as in `from_labels`.
        """
        join = join_sources(sources, how)
        kind = "cuda" if all(source.columns.device_kind == "cuda" for source in sources) else "cpu"
        ensemble = cls.of_codes(join.codes, join.categories, join.names, kind, index=join.index, left_out=join.left_out)
        return *ensemble._without_unlabelled(drop_unlabelled), join.index

    def _without_unlabelled(self, drop_unlabelled: bool, shared_names: bool = False) -> tuple["Ensemble", Any]:
        """Return this ensemble without unlabelled objects, which are refused or dropped, and the mask of its objects.

        Clusterings without labels are refused, too. With shared names, both are answers like others.
        """
        codes = self._any_copy
        unlabelled = unlabelled_objects(codes)
        if not shared_names:
            checks.check_clusterings([len(values) for values in self.categories], self.names, len(codes))
        if not drop_unlabelled:
            if not shared_names:
                checks.refuse_unlabelled(unlabelled)
            return self, None
        labelled = device.to_host(~unlabelled)
        index = None if self.index is None else self.index[labelled]
        codes = codes[~unlabelled].copy(order="F")
        properties = self.categories, self.names, self.device_kind
        return Ensemble.of_codes(codes, *properties, index=index, left_out=self.left_out), labelled

    @classmethod
    def of_codes(
        cls,
        codes: Any,
        categories: list[np.ndarray],
        names: list[Any],
        device_kind: str = "cpu",
        *,
        index: Any = None,
        left_out: Sequence[Any] = (),
    ) -> "Ensemble":
        """Return the ensemble of codes (n_objects, n_clusterings) numbered like `categories`.

        Nothing is checked; clusters may be empty.
        """
        ensemble = object.__new__(cls)
        ensemble.offsets = np.array([0, *accumulate(map(len, categories))], dtype=np.int64)
        ensemble.names, ensemble.categories, ensemble.device_kind = list(names), categories, device_kind
        ensemble.index, ensemble.left_out, ensemble._copies = index, left_out, {device.kind_of(codes): codes}
        return ensemble

    def take(self, rows: Any) -> "Ensemble":
        """Return the ensemble of some objects, with the same cluster numbering (clusters may become empty).

        The result has no names of objects.

        ``rows`` is a 1-D array of object indices, a mask over objects or a slice. Indices in GPU memory are not
        checked; they select from the labels in GPU memory, and the result stays there. A slice is taken there, too, if
        the labels are there.
        """
        kind = "cuda" if isinstance(rows, slice) and "cuda" in self._copies else device.kind_of(rows)
        if kind == "cpu":
            rows = checks.check_indices(rows, self.n_objects, "rows")
        codes = self._copy(kind)
        if kind == "cpu":
            codes = codes.T.take(rows, axis=1).T  # column by column, because the cache holds one column
        else:
            codes = codes[rows].copy(order="F")
        part = object.__new__(Ensemble)
        part.__dict__ |= self.__dict__ | {"index": None, "_copies": {kind: codes}}
        part.__dict__.pop("sizes", None)
        return part

    def with_(self, labels: Any, *, names: Sequence[Any] | None = None) -> "Ensemble":
        """Return the ensemble with new clusterings of the same objects appended; old ones are not encoded again.

        Parameters
        ----------
        labels : any labels that Ensemble takes, or {name: column}
            Objects may be unlabelled in all new clusterings. A DataFrame or Series that names the same objects in
            another order is brought into the order of this ensemble.
        names : sequence, optional
            The names of the new clusterings; by default numbers that follow the largest integer among the names.

        Raises
        ------
        ValueError, TypeError
            For labels that Ensemble refuses, another number of objects, other names of objects, another memory, and
            names already in use.

        Examples
        --------
        >>> import gpuens as ge
        >>> ens = ge.Ensemble([[0, 0, 1, 1], [0, 1, 1, 1]])
        >>> ens.with_([[5, 5, 5, 7]]).with_({"leiden": ["a", None, None, "b"]}).names
        [0, 1, 2, 'leiden']
        """
        if isinstance(labels, Ensemble):
            new = Ensemble(labels, names=names)
        else:
            columns = split_columns(labels, names)
            codes, categories = encode_columns(columns.values, columns.names)
            checks.check_clusterings([len(values) for values in categories], columns.names, len(codes))
            new = Ensemble.of_codes(codes, categories, columns.names, columns.device_kind, index=columns.index)
            warn_of_odd_labels(new.categories, new.names)
        if new.n_objects != self.n_objects:
            raise ValueError(
                f"labels are of {new.n_objects} objects and the ensemble has {self.n_objects}; pass labels of the same "
                "objects in the same order (gpuens.Ensemble.join matches different objects by name)."
            )
        if new.device_kind != self.device_kind:
            raise TypeError(
                f"labels are in {_MEMORY[new.device_kind]} and the ensemble in {_MEMORY[self.device_kind]}; move them "
                "there first (cupy.asarray or cupy.asnumpy)."
            )
        if new.names == list(range(new.n_clusterings)):  # default names
            numbers = [int(name) for name in self.names if isinstance(name, (int, np.integer))]
            new.names = [1 + max(numbers, default=-1) + name for name in new.names]
        for name in new.names:
            if name in self.names:
                raise ValueError(f"names: there is a clustering {name!r} already; give the new one another name.")
        if (places := places_of(self.index, new.index, "the ensemble", "labels", JOIN)) is not None:
            new = new.take(places)
        kind = device.kind_of(self._any_copy)
        parts = [self._any_copy, new._copy(kind)]
        dtype = max((part.dtype for part in parts), key=lambda dtype: dtype.itemsize)
        shape = (self.n_objects, self.n_clusterings + new.n_clusterings)
        codes = device.namespace(kind).empty(shape, dtype=dtype, order="F")
        codes[:, : self.n_clusterings], codes[:, self.n_clusterings :] = (cast_codes(part, dtype) for part in parts)
        return Ensemble.of_codes(
            codes,
            self.categories + new.categories,
            self.names + new.names,
            self.device_kind,
            index=new.index if self.index is None else self.index,
        )

    def without(self, clusterings: Any) -> "Ensemble":
        """Return the ensemble without some of its clusterings; the others are not encoded again.

        Parameters
        ----------
        clusterings : name, index, or a list of them
            An integer is an index, unless some names are integers: then it is a name.

        Raises
        ------
        ValueError, TypeError
            For unknown names, for names of several clusterings, if no clustering would be left, and if an object would
            have no label left.

        Examples
        --------
        >>> import gpuens as ge
        >>> ens = ge.Ensemble([[0, 0, 1, 1], [0, 1, 1, 1], [5, 5, 5, 7]])
        >>> ens.without(1).names, ens.without([0, 2]).to_array().ravel().tolist()
        ([0, 2], [0, 1, 1, 1])
        """
        left_out = _positions(clusterings, self.names)
        places = [m for m in range(self.n_clusterings) if m not in left_out]
        if not places:
            raise ValueError("clusterings: none would be left; leave out fewer of them.")
        codes = select_columns(self._any_copy, places, np.diff(self.offsets))
        if (unlabelled := device.to_host(unlabelled_objects(codes))).any():
            raise ValueError(
                f"clusterings: {int(unlabelled.sum())} object(s) have a label in none of the others, the first is "
                f"object {int(unlabelled.argmax())}; leave these objects out first (take)."
            )
        categories, names = [self.categories[m] for m in places], [self.names[m] for m in places]
        return Ensemble.of_codes(codes, categories, names, self.device_kind, index=self.index)

    def encoded(self, labels: Any) -> "Ensemble":
        """Return the ensemble of other objects' labels in the cluster numbering of this ensemble.

        ``labels`` hold the same clusterings, in any container that the class takes. Unknown label values become
        missing.

        Raises
        ------
        ValueError
            For another number of clusterings, for other names or another order of the names where both have names, and
            for objects without any known label.
        """
        ensemble, labelled = self.encoded_in_part(labels)
        if not labelled.all():
            raise ValueError(
                f"{np.count_nonzero(~labelled)} object(s), the first of them {int(labelled.argmin())}, have no known "
                "label; leave them out."
            )
        return ensemble

    def encoded_in_part(self, labels: Any, *, as_written: bool = False) -> tuple["Ensemble", np.ndarray]:
        """Return the result of `encoded` for any objects, and the mask (n_objects,) of those with a known label.

        ``as_written``: labels are those of a file or a table. Columns are matched by name where both have names, and
        unknown columns are left out; a number and its text are the same label.
        """
        new = labels if isinstance(labels, Ensemble) else split_columns(labels, n_clusterings=self.n_clusterings)
        places = self._places_of_fit(new.names, as_written)
        if isinstance(new, Ensemble):
            in_place = places == list(range(new.n_clusterings))
            codes = new._any_copy if in_place else new._any_copy[:, places]
            categories = [new.categories[m] for m in places]
        else:
            codes, categories = encode_columns(new.take(places).values, self.names, in_part=True)
        pairs = zip(categories, self.categories, strict=True)
        numbers = [find_values(values, fit_values, as_written=as_written) for values, fit_values in pairs]
        codes = renumber_codes(codes, codes_dtype(int(np.diff(self.offsets).max())), numbers)
        ensemble = Ensemble.of_codes(codes, self.categories, self.names, new.device_kind, index=new.index)
        return ensemble, ~device.to_host(unlabelled_objects(codes))

    def _places_of_fit(self, names: list[Any], as_written: bool) -> list[int]:
        """Return the positions of this ensemble's clusterings among those of new labels; refuse other clusterings."""
        have_names = all(isinstance(name, str) for name in [*names, *self.names])
        places = self.places_among(names) if have_names and as_written else list(range(len(names)))
        if len(places) != self.n_clusterings:
            raise ValueError(
                f"labels are of {len(places)} clusterings, and {self.n_clusterings} are expected; pass the same "
                "clusterings in the same order."
            )
        new_names = [names[m] for m in places]
        if have_names and new_names != self.names:
            m = next(m for m in range(len(places)) if new_names[m] != self.names[m])
            raise ValueError(
                "The feature names should match those that were passed during fit: clustering "
                f"{m} is {new_names[m]!r}, and {self.names[m]!r} is expected; select the columns in the order of fit, "
                "or pass an array."
            )
        return places

    def places_among(self, names: list[Any], source: str = "labels") -> list[int]:
        """Return the positions of this ensemble's clusterings among names; refuse names that do not occur exactly once.

        ``source`` describes the origin of the names in error messages.
        """
        for name in self.names:
            if names.count(name) != 1:
                several = f"{names.count(name)} columns" if name in names else "no column"
                raise ValueError(
                    f"{source}: there is {several} of the name {name!r} among {checks.listed(names)}; give one for "
                    f"each clustering of the fit ({checks.listed(self.names)})."
                )
        return [names.index(name) for name in self.names]

    @cached_property
    def sizes(self) -> np.ndarray:
        return cluster_sizes(self._any_copy, np.diff(self.offsets))

    @property
    def codes(self) -> np.ndarray:
        return self._copy("cpu")

    def codes_on(self, where: str) -> device.Array:
        """Return the codes on a device; the first call copies them there."""
        return device.on_current(self._copy("cuda")) if where == "cuda" else self._copy("cpu")

    def _copy(self, kind: str) -> Any:
        if kind not in self._copies:
            self._copies[kind] = device.move(self._any_copy.T, kind).T  # transposed twice to keep columns contiguous
        return self._copies[kind]

    def to_array(self) -> np.ndarray:
        """Return the codes as int64 (n_objects, n_clusterings) with -1 for missing."""
        array = self.codes.astype(np.int64)
        array[self.codes == self.missing_code] = checks.MISSING
        return array

    def to_frame(self) -> "pd.DataFrame":
        """Return the labels as a DataFrame (n_objects, n_clusterings) of categories, with NaN for missing.

        Its index holds the names of the objects, if the ensemble has them.

        >>> import gpuens as ge
        >>> ge.Ensemble([["b", "a", None], [3, 3, 7]], names=["p", "q"]).to_frame()["p"].tolist()
        ['b', 'a', nan]
        """
        import pandas as pd

        of_each = (
            pd.Categorical.from_codes(np.where(codes == self.missing_code, -1, codes.astype(np.int64)), values)
            for codes, values in zip(self.codes.T, map(pd.Index, self.categories), strict=True)
        )
        frame = pd.DataFrame(dict(enumerate(of_each)), index=self.index)
        return frame.set_axis(pd.Index(self.names, dtype=object), axis=1)

    @property
    def n_objects(self) -> int:
        return int(self._any_copy.shape[0])

    @property
    def n_clusterings(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_clusters(self) -> int:
        return int(self.offsets[-1])

    @property
    def missing_code(self) -> int:
        return int(np.iinfo(self._any_copy.dtype).max)

    @property
    def has_missing(self) -> bool:
        return bool(self.sizes.sum() < self.n_objects * self.n_clusterings)

    @property
    def _any_copy(self) -> Any:
        return [*self._copies.values()][0]  # noqa: RUF015, an iterator fails if another thread adds a copy meanwhile

    def __len__(self) -> int:
        return self.n_objects

    def __repr__(self) -> str:
        return f"Ensemble(n_objects={self.n_objects}, n_clusterings={self.n_clusterings}, n_clusters={self.n_clusters})"


_MEMORY = {"cpu": "host memory", "cuda": "GPU memory"}


def _positions(clusterings: Any, names: list[Any]) -> set[int]:
    """Return the indices of clusterings given by names or indices; refuse anything else."""
    single = isinstance(clusterings, str) or not isinstance(clusterings, Iterable)
    numbered = any(isinstance(name, (int, np.integer)) for name in names)
    positions = set()
    for clustering in [clusterings] if single else clusterings:
        if isinstance(clustering, (bool, np.bool_)):
            raise TypeError(
                f"clusterings must be names or indices, not {clustering}; of a mask pass np.flatnonzero(mask)."
            )
        if names.count(clustering) > 1:
            raise ValueError(f"clusterings: {clustering!r} is the name of several; give their indices, from 0 on.")
        if clustering in names:
            positions.add(names.index(clustering))
        elif isinstance(clustering, (int, np.integer)) and not numbered and 0 <= clustering < len(names):
            positions.add(int(clustering))
        else:
            raise ValueError(f"clusterings: there is no {checks.shown(clustering)}; there are {checks.listed(names)}.")
    return positions
