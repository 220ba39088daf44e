"""The child process of tests/fuzz/test_fuzz_files.py: it makes a file, spoils it, reads it in every way and reports.

A spoilt file is described by its kind and a seed, or by a file of tests/corpus and a seed of a mutation, so that a
failure can be run again:

    python tests/fuzz_files_worker.py "{'kind': '.npz sparse', 'seed': 5}"
    python tests/fuzz_files_worker.py "{'corpus': 'csv/quotes', 'seed': 5}"

The folder of the file also has a secret, whose contents must never be read. Code in the file would create a marker
there.
"""

import contextlib
import faulthandler
import io as streams
import json
import os
import pickle
import resource
import shutil
import tempfile
import traceback
import warnings
import zipfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from conftest import one_sentence
from fuzz_child import serve

import gpuens as ge
from gpuens import cli, distributed, io
from gpuens.batch import manifest
from gpuens.runtime import record

SECRET = 7_777_777  # the secret as a number
WORD = b"CANARY"  # the secret as bytes and as text
REFUSALS = (TypeError, ValueError, MemoryError, OSError)
MEMORY = 8 * 2**30  # bytes of address space, more than any file here needs
GROWTH = 2**28  # most bytes of memory that a file of some kilobytes may take
CORPUS = Path(__file__).with_name("corpus")  # a folder for each kind of file
N = 40


# --- what does harm ---------------------------------------------------------------------------------------------------


class Code:
    """An object that creates the marker when it is unpickled."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


class Trap:
    """A folder with a secret beside the files that are read."""

    def __init__(self, folder):
        self.folder, self.marker = Path(folder), Path(folder, "marker")
        self.bytes, self.array, self.hdf5 = (Path(folder, f"secret.{kind}") for kind in ("bin", "npy", "h5"))
        self.bytes.write_bytes(WORD * 2000)
        np.save(self.array, np.full((N, 2), SECRET))

    def with_hdf5(self):
        import h5py

        with h5py.File(self.hdf5, "w") as file:
            file["numbers"] = np.full(N, SECRET)
            file["texts"] = [WORD.decode()] * N
        return self.hdf5

    def sprung(self, found):
        """Return the harm that a result shows (it has the secret, or code has run), or None."""
        if self.marker.exists():
            return "code was run"
        for values in found:
            values = np.asarray(values)
            if values.dtype.kind in "OUST" and any(WORD.decode() in str(value) for value in values.ravel()[:10_000]):
                return "the secret was read"
            if values.dtype.kind in "iuf" and (values == SECRET).any():
                return "the secret was read"
            if values.dtype.kind in "iu" and WORD in (values.ravel().astype(np.int64) & 255).astype(np.uint8).tobytes():
                return "the secret was read"
        return None


# --- sound files ------------------------------------------------------------------------------------------------------


def labels(rng):
    return rng.integers(0, 4, (N, 3))


def features(rng):
    return rng.random((N, 3)).round(3)


def sparse(rng, graph=False):
    made = sp.random(N, N if graph else 7, 0.3, format="csr", rng=rng)
    made = (made + made.T).tocsr() if graph else made
    return made.asformat(str(rng.choice(["csr", "csc", "coo", "bsr", "dia"])))


def annotated(path, rng):
    import anndata

    obs = pd.DataFrame({f"c{m}": pd.Categorical(column.astype(str)) for m, column in enumerate(labels(rng).T)})
    obs = obs.assign(i=rng.integers(0, 3, N), n=pd.array(rng.integers(0, 3, N), dtype="Int64"))
    obs = obs.set_axis([f"cell {m}" for m in range(N)], axis=0)
    adata = anndata.AnnData(sparse(rng).tocsr(), obs=obs, obsm={"X_pca": features(rng)})
    adata.layers["other"] = adata.X.tocsc()
    adata.obsp["connectivities"] = sparse(rng, graph=True).tocsr()
    adata.uns["note"] = {"of": 1}
    adata.write_h5ad(path, compression=str(rng.choice(["gzip", "lzf"])) if rng.random() < 0.5 else None)


def zarr_array(path, rng):
    import numcodecs
    import zarr

    values = labels(rng) if rng.random() < 0.6 else features(rng)
    if rng.random() < 0.2:
        values = values.astype(str)
    chunks, form = (int(rng.choice([N, 16])), 3), int(rng.choice([2, 3]))
    sharded = {"shards": (N // chunks[0] * chunks[0], 3)} if form == 3 and rng.random() < 0.2 else {}
    blosc = zarr.codecs.BloscCodec() if form == 3 else numcodecs.Blosc()
    made = zarr.create_array(
        path, shape=values.shape, dtype=values.dtype, chunks=chunks, zarr_format=form, **sharded,
        compressors=[None, "auto", blosc][int(rng.integers(3))],
    )  # fmt: skip
    made[:] = values


def table(rng):
    frame = pd.DataFrame(labels(rng), columns=list("pqr"))
    return frame.assign(s=[f"g{value}" for value in frame["p"]]) if rng.random() < 0.3 else frame


def parquet(path, rng):
    table(rng).to_parquet(path, compression=str(rng.choice(["snappy", "gzip", "zstd"])))


def text(path, rng):
    table(rng).to_csv(path, index=bool(rng.random() < 0.3), sep="\t" if path.suffix == ".tsv" else ",")


def text_between_blanks(path, rng):
    before = "# made by a program\n" * int(rng.integers(3))
    path.write_text(before + table(rng).to_csv(index=bool(rng.random() < 0.3), sep=" "))


def packed_text(path, rng):
    table(rng).to_csv(path, index=False, compression="xz")


def feather(path, rng):
    table(rng).to_feather(path, compression=str(rng.choice(["uncompressed", "lz4", "zstd"])))


def jobs(path, _):
    np.save(path.with_name("a.npy"), np.arange(60).reshape(20, 3) % 4)
    path.write_text(
        "defaults: {seed: 3, report: false}\n"
        "jobs:\n  - {id: one, input: a.npy, method: [lwea], parameters: {theta: 0.5}, n_clusters: [2, 3]}\n"
        "  - input: '*.npy'\n    n_clusters: 4\n"
        "matrix:\n  input: [a.npy]\n  n_clusters: [2, 5]\n  method: [lwea]\n"
    )


# --- spoilt bytes -----------------------------------------------------------------------------------------------------


def flipped(data, rng):
    """Return a file's bytes, of which some are changed, cut off or repeated."""
    data = bytearray(data)
    if not data:
        return bytes(data)
    end = len(data) if rng.random() < 0.5 else min(len(data), 2000)  # headers are at the beginning or at the end
    start = len(data) - end if rng.random() < 0.3 else 0
    for at in rng.integers(start, start + end, int(rng.choice([1, 2, 5, 20]))):
        how = rng.random()
        data[at] = data[at] ^ 1 << int(rng.integers(8)) if how < 0.5 else int(rng.choice([0, 1, 127, 128, 255, 34, 10]))
    if rng.random() < 0.1:
        data = data[: int(rng.integers(len(data)))]
    if rng.random() < 0.05:
        at = int(rng.integers(len(data) or 1))
        data[at:at] = data[: int(rng.integers(2000))]
    return bytes(data)


def mutated(data, kind, mutate):
    """Apply ``mutate`` to the bytes of a file, or of one member of an npz file, whose checksums would refuse others."""
    if not kind.startswith(".npz"):
        return mutate(data)
    try:
        with zipfile.ZipFile(streams.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = sorted(members)[zlib.crc32(data) % len(members)]
    except Exception:  # an archive that mutations have broken
        return mutate(data)
    written = streams.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, mutate(content) if member == name else content)
    return written.getvalue()


# --- spoilt fields ----------------------------------------------------------------------------------------------------


def odd_numbers(values, rng):
    """Return integers of which one, or all, have a value out of the valid range."""
    far = int(rng.choice([-1, -(2**31), 2**31 - 1, 2**31, 2**32 + 1, 2**40, 2**62, N, N + 1, 8, 1000]))
    values = np.array(values, dtype=np.int64)
    how = rng.random()
    if values.size and how < 0.6:
        values.flat[int(rng.integers(values.size))] = far
    elif how < 0.7:
        values = values.ravel()[: int(rng.integers(values.size + 1))]
    elif how < 0.8:
        values = np.append(values.ravel(), far)
    elif how < 0.9:
        values = values[::-1]
    else:
        others = [values.astype(np.uint64), values.astype(float), values[..., None], np.array(far)]
        values = others[int(rng.integers(4))]
    return values


def spoil_npz(path, trap, rng):
    with np.load(path) as found:
        arrays = dict(found)
    name = str(rng.choice(list(arrays)))
    if arrays[name].dtype.kind in "iu":
        arrays[name] = odd_numbers(arrays[name], rng)
    elif name == "format":
        arrays[name] = np.array(str(rng.choice(["csr", "csc", "coo", "bsr", "dia", "lil", "random", "x"])))
    elif rng.random() < 0.3:
        arrays[name] = np.array([Code(trap.marker)] * arrays[name].size, dtype=object)
    else:
        arrays[name] = arrays[name].ravel()[: int(rng.integers(arrays[name].size + 1))]
    np.savez(path, **arrays)


def spoil_h5ad(path, trap, rng):
    import h5py

    secret = trap.with_hdf5()
    with h5py.File(path, "r+") as file:
        members = []
        file.visit(members.append)
        name = str(rng.choice(members))
        item, (parent, _, own) = file[name], name.rpartition("/")
        about = dict(item.attrs)
        parent = file[parent or "/"]
        how = rng.choice(
            ["outer", "inner", "loop", "external", "virtual", "numbers", "shape", "attribute", "type", "gone"]
        )
        if how in ("outer", "inner", "loop", "gone"):
            del parent[own]
            if how == "outer":
                parent[own] = h5py.ExternalLink(str(secret), str(rng.choice(["/numbers", "/texts", "/", "/nothing"])))
            elif how == "inner":
                file["hidden"] = h5py.ExternalLink(str(secret), str(rng.choice(["/numbers", "/texts"])))
                parent[own] = h5py.SoftLink(str(rng.choice(["/hidden", "/obs", "/", ".", "/nothing"])))
            elif how == "loop":
                parent[own] = parent
        elif how == "attribute" and about:
            key = str(rng.choice(list(about)))
            old = about[key]
            others = [
                "",
                "/hidden",
                "dataframe",
                "awkward-array",
                "dict",
                -1,
                2**62,
                [2**62, 7],
                [1.5],
                ["/obs", "X"],
                b"\xff",
            ]
            item.attrs[key] = (
                odd_numbers(old, rng) if np.asarray(old).dtype.kind in "iu" else others[int(rng.integers(11))]
            )
        elif isinstance(item, h5py.Dataset):
            shape, dtype = item.shape, item.dtype
            if how == "external" and dtype.kind in "iuf":
                del parent[own]
                item = parent.create_dataset(
                    own, shape, dtype="i1", external=[(str(trap.bytes), 0, int(np.prod(shape)))]
                )
            elif how == "virtual":
                del parent[own]
                layout = h5py.VirtualLayout((N,), "i8")
                layout[:] = h5py.VirtualSource(str(secret), "numbers", (N,))
                item = parent.create_virtual_dataset(own, layout)
            elif how == "shape":
                del parent[own]
                far = int(rng.choice([0, 1, N + 1, 2**33, 2**60]))
                item = parent.create_dataset(
                    own, (far,), dtype="i4", chunks=(int(rng.choice([1, 2**29])),), maxshape=(None,)
                )
            elif how == "type":
                del parent[own]
                odd = [np.zeros(N, "i4,f4"), np.void(b"abc"), 5, "text", np.zeros((N, 2, 2)), np.zeros(N, complex)]
                item = parent.create_dataset(own, data=odd[int(rng.integers(6))])
            elif dtype.kind in "iu":
                values = odd_numbers(item[...], rng)
                del parent[own]
                item = parent.create_dataset(own, data=values)
            item.attrs.update(about)


def spoil_zarr(path, trap, rng):
    headers = [file for file in path.rglob("*") if file.name in ("zarr.json", ".zarray")]
    chunks = [file for file in path.rglob("*") if file.is_file() and file not in headers and file.name != ".zattrs"]
    how = rng.random()
    if how < 0.15:
        chunk = chunks[int(rng.integers(len(chunks)))]
        chunk.unlink()
        other = rng.choice(["link", "pipe", "folder"])
        chunk.symlink_to(trap.bytes) if other == "link" else os.mkfifo(chunk) if other == "pipe" else chunk.mkdir()
        return
    header = json.loads(headers[0].read_text())
    if how < 0.35 and headers[0].name == ".zarray":
        header |= {
            "dtype": "|O",
            "fill_value": "",
            "filters": [{"id": "vlen-utf8"}, {"id": "pickle"}],
            "compressor": None,
        }
        if rng.random() < 0.5:
            header |= {"filters": [{"id": "vlen-utf8"}], "compressor": {"id": "pickle"}}
        for chunk in chunks:
            chunk.write_bytes(pickle.dumps(Code(trap.marker)))
    else:
        odd = [
            None, True, -1, 0, 2**62, 1.5, "", "x", [], {}, [2**40, 3], [N], [0, 0], [[]],
            "|O", "<i8", ">f4", "|V8", "object", "string", "int64", "float16", "r16",
            [{"id": "pickle"}], {"id": "pickle"}, {"id": "zlib", "level": 99}, [{"name": "numcodecs.pickle"}],
            {"name": "bytes"}, [{"name": "bytes", "configuration": {"endian": "big"}}],
        ]  # fmt: skip
        places = [(header, key) for key in header]
        for key, value in header.items():
            places += [(value, key) for key in value] if isinstance(value, dict) else []
            places += [(value, at) for at in range(len(value))] if isinstance(value, list) else []
        holder, key = places[int(rng.integers(len(places)))]
        holder[key] = odd[int(rng.integers(len(odd)))]
    headers[0].write_text(json.dumps(header))


def spoil_parquet(path, trap, rng):
    import pyarrow as pa
    from pyarrow import parquet

    found = parquet.read_table(path)
    how = rng.choice(["metadata", "code", "type", "names"])
    if how == "metadata":
        odd = [b"", b"{}", b"[]", b"\xff", b'{"index_columns": [5, null, {"kind": "range"}], "columns": []}',
               b'{"index_columns": ["p"], "columns": [{"name": "p", "pandas_type": "object", "numpy_type": "object"}]}',
               found.schema.metadata[b"pandas"].replace(b"int64", b"category")]  # fmt: skip
        found = found.replace_schema_metadata({b"pandas": odd[int(rng.integers(len(odd)))]})
    elif how == "code":
        about = {b"ARROW:extension:name": b"arrow.py_extension_type"}
        about[b"ARROW:extension:metadata"] = pickle.dumps(Code(trap.marker))
        fields = [field.with_metadata(about) for field in found.schema]
        found = pa.table(found.columns, schema=pa.schema(fields, found.schema.metadata))
    elif how == "type":
        odd = [pa.array([[1]] * N), pa.array([{"x": 1}] * N), pa.nulls(N), pa.array([b"\xff"] * N)]
        found = found.set_column(0, "p", odd[int(rng.integers(4))])
    else:
        found = found.rename_columns(rng.choice(["p", "", "__index_level_0__", "\0"], found.num_columns).tolist())
    parquet.write_table(found, path)


def spoil_text(path, _, rng):
    separator = "\t" if path.suffix == ".tsv" else ","
    lines = [line.split(separator) for line in path.read_text().split("\n")]
    odd = [
        "", '"', '""', '"a\nb"', "\0", "1e999", "-1", "nan", "=1+1", "'", " ", "\r", "é", "\ufeff", "1,5",
        separator * 9, "9" * 400, "9" * 5000, "x" * 200_000, '"' + "y," * 90_000 + '"',
    ]  # fmt: skip
    for _ in range(int(rng.choice([1, 1, 3, 10]))):
        line = lines[int(rng.integers(len(lines)))]
        line[int(rng.integers(len(line)))] = odd[int(rng.integers(len(odd)))]
    written = "\n".join(map(separator.join, lines))
    path.write_bytes(written.encode(str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1"])), "replace"))


def spoil_jobs(path, trap, rng):
    odd = [
        f"!!python/object/apply:os.mkdir [{trap.marker}]", str(trap.array), "null", "~", "-1", "1e999", ".nan", "no",
        "[]", "{}", "'" + "x" * 5000 + "'", "&a [*a]", "2001-01-01", "[[[[]]]]", "[1, a, null]", "? x", "<<: 5",
        "999999999999",
    ]  # fmt: skip
    words = path.read_text().split(" ")
    for _ in range(int(rng.choice([1, 1, 2, 5]))):
        words[int(rng.integers(len(words)))] = odd[int(rng.integers(len(odd)))]
    path.write_text(" ".join(words))


def model(path, rng):
    method = (ge.LWEA, ge.KCC, ge.HBGF, ge.SCEC, ge.MCLA, ge.Voting)[int(rng.integers(6))]
    method(2).fit([np.array([f"c{label}" for label in column]) for column in labels(rng).T]).save(path)


def spoil_model(path, trap, rng):
    """Replace a value of the JSON of a model, or spoil an array."""
    with np.load(path) as found:
        arrays = dict(found)
    if rng.random() < 0.4:
        return spoil_npz(path, trap, rng)
    described = json.loads(arrays["model"].tobytes())
    spoil_json(described, rng)
    np.savez(path, **arrays | {"model": np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)})


ODD_JSON = [
    None, True, -1, 0, 1, 2**31, 2**62, 2**70, 1.5, 1e300, float("nan"), "", "x", "Blocks", [], {}, [[]], [None],
    [2**62], {"is": "x"}, ["a"] * 3, "9" * 5000,
]  # fmt: skip


def places_of(value):
    """Return all (container, key) of nested mappings and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, part in items:
        found.append((value, key))
        found += places_of(part) if isinstance(part, (dict, list)) else []
    return found


def spoil_json(described, rng):
    """Replace or remove some values of nested mappings and lists, in place."""
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        places = places_of(described)
        if not places:
            return
        container, key = places[int(rng.integers(len(places)))]
        if rng.random() < 0.2:
            del container[key]
        else:
            container[key] = ODD_JSON[int(rng.integers(len(ODD_JSON)))]


def jobs_in_json(path, _):
    np.save(path.with_name("a.npy"), np.arange(60).reshape(20, 3) % 4)
    one = {"id": "one", "input": "a.npy", "method": ["lwea"], "parameters": {"theta": 0.5}, "n_clusters": [2, 3]}
    matrix = {"input": ["a.npy"], "n_clusters": [2, 5], "method": ["lwea"]}
    path.write_text(json.dumps({"defaults": {"seed": 3, "report": False}, "jobs": [one], "matrix": matrix}))


def spoil_jobs_in_json(path, _, rng):
    described = json.loads(path.read_text())
    spoil_json(described, rng)
    path.write_text(json.dumps(described))


def save_npz(make):
    return lambda path, rng: sp.save_npz(path, make(rng))


# For each kind of file: the function that makes a file, and the function that replaces its fields.
# None for the second means that only bytes are changed.
KINDS = {
    ".npz sparse": (save_npz(sparse), spoil_npz),
    ".npz graph": (save_npz(partial(sparse, graph=True)), spoil_npz),
    ".npz": (lambda path, rng: np.savez(path, X=features(rng), y=labels(rng)[:, 0]), spoil_npz),
    ".npy": (lambda path, rng: np.save(path, labels(rng)), None),
    ".h5ad": (annotated, spoil_h5ad),
    ".zarr": (zarr_array, spoil_zarr),
    ".parquet": (parquet, spoil_parquet),
    ".csv": (text, spoil_text),
    ".tsv": (text, spoil_text),
    ".txt": (text_between_blanks, spoil_text),
    ".csv.xz": (packed_text, None),
    ".feather": (feather, None),
    ".yaml": (jobs, spoil_jobs),
    ".json": (jobs_in_json, spoil_jobs_in_json),
    ".npz model": (model, spoil_model),
}
# folders of tests/corpus, and their kinds
FOLDERS = {"model": ".npz model", "graph": ".npz graph"} | {
    kind: f".{kind}" for kind in ("npy", "npz", "csv", "tsv", "parquet", "yaml", "json")
}


# --- reading in every way ---------------------------------------------------------------------------------------------


def readers(path, kind, commands=True):
    """Yield functions, each of which reads a file in one way and returns the arrays."""
    if kind in (".yaml", ".json"):
        yield lambda: [[str(job.facts()) for job in manifest.load(path)[0] if str(job.input) != str(path)]]
        return
    if kind == ".npz model":
        yield lambda: predicted(ge.load(path))
        if commands:
            yield lambda: by_command("predict", str(path), str(new_objects(path)), "-o", str(path.with_name("out.npy")))
        return
    yield lambda: of_ensemble(io.read_label_file(path, columns=None if kind == ".h5ad" else "*"))
    if kind == ".npz":
        yield lambda: of_ensemble(io.read_label_file(path, key="y"))
    yield lambda: list(io.read_columns(path).values())
    yield lambda: clustered(io.read_features(path))
    if kind in (".csv", ".txt", ".feather"):
        for form in ("long", "members", "one_hot"):
            yield lambda form=form: of_ensemble(io.read_label_file(path, columns=None, **{form: True}))
        yield lambda: io.read_memberships(path)
    if kind == ".h5ad":
        for key in ("X_pca", "other"):
            yield lambda key=key: clustered(io.read_features(path, key=key))
        yield lambda: clustered(io.read_graph(path), graph=True)
    if kind == ".npz graph":
        yield lambda: clustered(io.read_features(path), graph=True)
    if kind in (".npy", ".zarr", ".parquet"):
        yield lambda: [np.asarray(distributed.read_labels(path, chunk_rows=16).compute(scheduler="synchronous"))]
    if commands:
        yield lambda: by_command("score", str(path), str(path), "--columns-a", "0", "--columns-b", "0")
        yield lambda: by_command("generate", str(path), "-o", str(path.with_name("out.npy")), "--n-clusterings", "2")


def new_objects(path):
    new = path.with_name("new.csv")
    new.write_text("a,b,c\n" + "c0,c1,c2\nc3,c3,c3\nc1,,c9\n")
    return new


def predicted(found):
    """Return the labels and the confidences of five objects that have the model's own label values, and one missing."""
    new = [[values[i % len(values)] for i in range(5)] for values in map(np.ndarray.tolist, found.numbering.categories)]
    new[0][4] = new[0][4] if len(new) == 1 else None
    predictions = [found.predict(new)]
    assert all(0 <= label < found.n_clusters for label in predictions[0].tolist()), "a label out of range"
    if found.lacks_evidence() is None:
        predictions.append(found.evidence(new).objects.confidence)
    return predictions


def of_ensemble(read):
    ids = [] if read.ids is None else [read.ids]
    return [*ids, *(values for values in read.ensemble.categories)]


def clustered(X, graph=False):
    dense = [X.data if hasattr(X, "tocsr") else X]
    if X.shape[0] * X.shape[1] < 10**6:
        if graph:
            ge.generate.leiden_ensemble(X, [1.0], 1, progress=False)
        else:
            ge.generate.kmeans_ensemble(X, 2, 2, progress=False)
    return dense


def by_command(*words):
    """Return the output of a command. Raise its error message if it ends with exit code 2 or 3 and one line."""
    out, err = streams.StringIO(), streams.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([*words])
    said = err.getvalue()
    assert code in (0, 2, 3), f"{words[0]} ends with {code}: {said}"
    if code:
        *warned, last, nothing = said.split("\n")
        assert all(line.startswith("gpuens: warning: ") for line in warned), said
        assert last.startswith("gpuens: "), said
        assert nothing == "", said
        raise ValueError(last.removeprefix("gpuens: "))
    return [out.getvalue(), said]


def judged(path, kind, trap, commands=True):
    """Read a file in every way; return "read", or "refused: " and the last error message.

    Raise AssertionError for a fault: an error of another type or of several sentences, code that ran, a secret that was
    read, or memory out of proportion.
    """
    said, done = "", 0
    record.forget_peak_memory()
    before = record.peak_memory()
    for read in readers(path, kind, commands):
        try:
            found = read()
            done += 1
        except REFUSALS as error:
            try:
                said, found = one_sentence(error), [str(error)]
            except AssertionError as other:
                raise other from error
        assert (wrong := trap.sprung(found)) is None, f"{wrong}: {found}"
    grown = record.peak_memory() - before
    assert grown < GROWTH, f"reading takes {grown:,} bytes"
    return "read" if done else f"refused: {said}"


def verdict(case):
    """Return the verdict of `judged` about a file that is made and spoilt by a seed, or mutated from the corpus."""
    rng = np.random.default_rng(case["seed"])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.mkdir("place")
        trap = Trap(folder)
        if "corpus" in case:
            kind = FOLDERS[case["corpus"].split("/")[0]]
            data = (CORPUS / case["corpus"]).read_bytes()
            path = file_of(kind)
            path.write_bytes(mutated(data, kind, partial(flipped, rng=rng)) if case["seed"] else data)
            return judged(path, kind, trap, commands=False)
        make, spoil = KINDS[case["kind"]]
        path = file_of(case["kind"])
        make(path, rng)
        sound = rng.random() < 0.05
        if sound:
            pass
        elif spoil is not None and rng.random() < 0.6:
            spoil(path, trap, rng)
        else:
            files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
            file = files[int(rng.integers(len(files)))]
            file.write_bytes(flipped(file.read_bytes(), rng))
        if "keep" in case:
            shutil.copytree(folder, case["keep"], symlinks=True, dirs_exist_ok=True)
        said = judged(path, case["kind"], trap, commands=case["seed"] % 2 == 0)  # commands are slow
        assert said == "read" or not sound, f"a sound file is {said}"
        return said


def file_of(kind, folder="."):
    return Path(folder, "place", f"file{kind.split()[0]}").absolute()


def answer(case):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return verdict(case)
    except BaseException as error:
        return "".join(traceback.format_exception(error))


def faults_of_corpus(n_mutations):
    """Read each file of the corpus and its mutations; print their number, and return the messages about faults."""
    files = [path.relative_to(CORPUS).as_posix() for path in sorted(CORPUS.glob("*/*"))]
    cases = [{"corpus": file, "seed": seed} for file in files for seed in range(1 + n_mutations)]
    faults = []
    for case in cases:
        said = answer(case)
        if said != "read" and not said.startswith("refused: "):
            faults.append(f"{case}: {said}")
            print(faults[-1], flush=True)
    print(f"{len(cases)} files, {len(faults)} faults")
    return faults


if __name__ == "__main__":
    faulthandler.enable()
    os.environ["NUMCODECS_ALLOW_UNSAFE_PICKLE_DECODE"] = "1"  # old versions of numcodecs always allow unsafe pickles
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    serve(answer)
