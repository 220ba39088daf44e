"""Damaged and malicious files: each file causes a one-sentence error with exit code 3, and no output is left behind."""

import csv
import gzip
import io
import json
import os
import pickle
import socket
import struct
import tomllib
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from conftest import one_sentence, peak_of, refused

import gpuens as ge
from gpuens import cli, distributed
from gpuens.batch import manifest
from gpuens.io import read_features, read_labels, write_labels
from gpuens.io.arrays import Archive

LABELS = np.random.default_rng(0).integers(0, 9, (500, 4))


def npy(shape, dtype="<i8", data=b""):
    """Return the bytes of an npy file with the given shape in its header, followed by the given data."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


def saved(array):
    """Return the bytes of an array in npy form, pickled if it holds objects."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz(**members):
    """Return the bytes of an npz file whose members have the given bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def patched(archive, offsets, value):
    """Return a zip archive with one field of its local and central headers overwritten."""
    data = bytearray(archive)
    for signature, offset in zip((b"PK\x03\x04", b"PK\x01\x02"), offsets, strict=True):
        at = data.index(signature) + offset
        data[at : at + 2] = struct.pack("<H", value)
    return bytes(data)


GOOD_NPY = npy((500, 4), data=LABELS.astype("<i8").tobytes())
OBJECTS = saved(np.array([["a", None]], dtype=object))


CORPUS = {
    "claims 10^12 rows.npy": npy((10**12, 20), data=b"\0" * 160),
    "claims less.npy": npy((2, 2), data=b"\0" * 160),
    "claims more than can be counted.npy": npy((2**62, 2**62)),
    "negative.npy": npy((-3, 2)),
    "of no type.npy": npy((2, 2), "<z9", b"\0" * 32),
    "objects.npy": OBJECTS,
    "records.npy": saved(np.zeros(3, dtype=[("a", int), ("b", int)])),
    "of the future.npy": b"\x93NUMPY\x09\x00" + GOOD_NPY[8:],
    "code in the header.npy": GOOD_NPY.replace(b"(500, 4)", b"exit(3) "),
    "a long header.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 100,
    "of no dimension.npy": npy((), data=b"\0" * 8),
    "of three.npy": npy((1, 2, 2), data=b"\0" * 32),
    "empty.npz": npz(),
    "text.npz": b"hello",
    "no arrays.npz": npz(a=b"hello"),
    "claims 10^12 rows.npz": npz(labels=npy((10**12, 20), data=b"\0" * 160)),
    "encrypted.npz": patched(npz(labels=GOOD_NPY), (6, 8), 0x1),
    "unknown compression.npz": patched(npz(labels=GOOD_NPY), (8, 10), 77),
    "objects.npz": npz(labels=OBJECTS),
    "objects among others.npz": npz(a=npy((2,), data=b"\0" * 16), b=OBJECTS),
    "cut inside.npz": npz(labels=GOOD_NPY[:200]),
    "lengths differ.npz": npz(a=npy((2,), data=b"\0" * 16), b=npy((3,), data=b"\0" * 24)),
    "binary.csv": bytes(range(256)) * 8,
    "a picture.csv": b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
    "only a quote.csv": b'"',
    "no names.tsv": b"\t\t\t\n",
    "twice packed.csv.gz": gzip.compress(gzip.compress(b"p,q\n1,2\n2,3\n")),
    "cut.csv.gz": gzip.compress(b"p,q\n" + b"1,2\n2,3\n" * 1000)[:-9],
    "flipped.csv.gz": bytes(byte ^ (i == 30) * 255 for i, byte in enumerate(gzip.compress(LABELS.tobytes()))),
    "nothing.parquet": b"PAR1PAR1",
    "long footer.parquet": b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1",
    "nothing.h5ad": b"\x89HDF\r\n\x1a\n" + b"\0" * 100,
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused_everywhere(path, capsys):
    """Check that a file raises an error in Python and on the command line, and that the command leaves no output."""
    before = sorted(path.parent.iterdir())
    with pytest.raises((ValueError, TypeError, MemoryError)) as error:
        read_labels(path)
    one_sentence(error.value)
    assert cli.main(["run", str(path), "-k", "2"]) == 3
    out, err = capsys.readouterr()
    assert (out, err[:8], err.count("\n")) == ("", "gpuens: ", 1)
    assert sorted(path.parent.iterdir()) == before
    return str(error.value)


@pytest.mark.parametrize("name", CORPUS)
def test_hostile_files(place, capsys, name):
    if name.endswith(".h5ad"):
        pytest.importorskip("anndata")
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = place / name
    path.write_bytes(CORPUS[name])
    said = refused_everywhere(path, capsys)
    for word in ("encrypted", "objects"):
        assert word in said.lower() or word not in name
    with pytest.raises((ValueError, TypeError, MemoryError)) as error:
        ge.generate.kmeans_ensemble(read_features(path), 2, 2)
    one_sentence(error.value)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".h5ad"])
@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_are_refused_or_read(place, suffix, seed):
    """Reading a damaged file gives an ensemble, or raises an error of an expected class with one sentence."""
    rng = np.random.default_rng(seed)
    write_labels(place / f"good{suffix}", LABELS)
    data = bytearray((place / f"good{suffix}").read_bytes())
    for at in rng.integers(0, min(len(data), 4000), 5):  # most kinds of files begin with a header
        data[at] ^= 1 << int(rng.integers(8))
    path = place / f"flipped{suffix}"
    path.write_bytes(data[: len(data) - int(rng.integers(2)) * int(rng.integers(50))])
    try:
        assert read_labels(path, columns="*", missing=[]).n_objects > 0
    except (ValueError, TypeError, MemoryError) as error:
        one_sentence(error)
    except UserWarning:  # damage can make a clustering constant
        pass


def test_flipped_bits_in_the_metadata_of_pandas_are_refused_or_read(place):
    """Row names, names of columns and types may then be others than those of the columns in the file."""
    index = pd.Index(list("abcdefghijklmnopqrstuvwx"), name="cell")
    frame = pd.DataFrame({"a": np.arange(24) % 3, "b": np.arange(24) % 2}, index=index)
    frame.to_parquet("good.parquet", compression=None)
    data = Path("good.parquet").read_bytes()
    begin = data.index(b"ARROW:schema")  # in base64; Arrow reads its copy of the metadata here
    n_refused = 0
    for at in range(begin + 250, begin + 600):
        flipped = bytearray(data)
        flipped[at] ^= 1
        Path("flipped.parquet").write_bytes(flipped)
        for read in (lambda path: read_labels(path, columns="*", missing=[]), read_features, ge.io.read_ids):
            try:
                read("flipped.parquet")
            except ValueError as error:
                n_refused += "flipped.parquet" in one_sentence(error) or pytest.fail(str(error))
            except UserWarning:  # other columns may look odd
                pass
    assert n_refused


def test_a_header_is_read_before_its_data(place, monkeypatch):
    """The claimed size is compared with the memory budget before any data are read, even if the claim is true."""
    labels = np.zeros((10**6, 2), dtype=np.int64)
    np.savez_compressed("bomb.npz", labels=labels)
    assert (place / "bomb.npz").stat().st_size < 20_000
    np.save("large.npy", labels)
    pd.DataFrame(labels).add_prefix("c").to_parquet("bomb.parquet")
    pytest.importorskip("anndata")
    write_labels("bomb.h5ad", labels)
    monkeypatch.setenv("GPUENS_MEMORY", "5MB")
    for name, claimed in {"bomb.npz": "16.0 MB", "large.npy": "18.0 MB", "bomb.parquet": "16.0 MB"}.items():
        read = partial(refused, partial(read_labels, name), MemoryError, claimed, "5.0 MB may be used")
        assert peak_of(read) < 5e6
    refused(lambda: read_labels("bomb.h5ad"), MemoryError, "bomb.h5ad", "may be used")
    with Archive("bomb.npz") as archive:
        assert archive.header("labels").shape == (10**6, 2)


@pytest.mark.parametrize("value", [np.zeros((3, 3)), 5, "obs", None])
def test_obs_that_is_no_table(place, capsys, value):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata")
    with h5py.File("odd.h5ad", "w") as file:
        if value is None:
            file.create_group("obs")["a"] = [1, 2, 3]
        else:
            file["obs"] = value
    refused_everywhere(place / "odd.h5ad", capsys)


# --- code in files ----------------------------------------------------------------------------------------------------


class Code:
    """An object that makes a folder when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("marker",)


@pytest.fixture
def armed(monkeypatch):
    """Restore the pickle codec as in numcodecs up to 0.16.5: this codec decodes any object in a file."""
    pickles = pytest.importorskip("numcodecs.pickles")
    monkeypatch.setattr(pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)


def zarr_of_code(name, filters, compressor=None):
    """Write a zarr array (format 2) whose chunk makes a folder "marker" when it is unpickled."""
    header = {"zarr_format": 2, "shape": [60, 4], "chunks": [60, 4], "dtype": "|O", "order": "C", "fill_value": ""}
    os.mkdir(name)
    Path(name, ".zarray").write_text(json.dumps(header | {"filters": filters, "compressor": compressor}))
    Path(name, "0.0").write_bytes(pickle.dumps(Code()))


@pytest.mark.parametrize(
    ("filters", "compressor"),
    [([{"id": "vlen-utf8"}, {"id": "pickle"}], None), ([{"id": "vlen-utf8"}], {"id": "pickle"})],
)
def test_no_code_in_a_zarr_array_is_run(place, capsys, armed, filters, compressor):
    zarr = pytest.importorskip("zarr")
    zarr_of_code("code.zarr", filters, compressor)
    for line in ("run code.zarr -k 3 -o out.npy", "describe code.zarr", "score code.zarr code.zarr",
                 "generate code.zarr -o x.npy"):  # fmt: skip
        assert cli.main(line.split()) == 3
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), "'pickle'" in err) == ("", 1, True), line
    for read in (read_labels, read_features, distributed.read_labels, distributed.read_features):
        refused(lambda read=read: read("code.zarr"), ValueError, "code.zarr", "'pickle'", "might run code")
    assert sorted(os.listdir()) == ["code.zarr"]
    with pytest.raises((TypeError, ValueError, AttributeError)):
        zarr.open_array("code.zarr", mode="r")[...]
    assert sorted(os.listdir()) == ["code.zarr", "marker"], "the attack is none"


def test_numcodecs_is_one_that_runs_no_code():
    about = tomllib.loads((Path(ge.__file__).parents[1] / "pyproject.toml").read_text())
    (least,) = (line for line in about["project"]["optional-dependencies"]["io"] if line.startswith("numcodecs"))
    assert tuple(map(int, least.partition(">=")[2].split("."))) >= (0, 16, 6)


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("i4", {"zarr_format": 2}),
        ("i4", {"shards": (60, 4)}),
        ("f8", {"compressors": None}),
        ("U3", {}),
        ("U3", {"zarr_format": 2}),
        ("bool", {}),
        ("u8", {"filters": ["delta"], "zarr_format": 2}),
    ],
)
def test_zarr_arrays_of_numbers_and_strings_are_read(place, dtype, options):
    zarr = pytest.importorskip("zarr")
    values = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr warns of preliminary formats
        if "filters" in options:
            options = options | {"filters": [pytest.importorskip("numcodecs").Delta(dtype)]}
        made = zarr.create_array("a.zarr", shape=(60, 4), chunks=(30, 4), dtype=dtype, **options)
        made[:] = values
        found = read_labels("a.zarr")
    np.testing.assert_array_equal(found.to_array(), ge.Ensemble(values).to_array())


@pytest.mark.parametrize(
    ("field", "value", "kind", "said"),
    [
        ("dtype", "|V8", ValueError, "numbers or strings"),
        ("dtype", [["a", "<i4"]], ValueError, "numbers or strings"),
        ("chunks", [2**31, 2**31], MemoryError, "a chunk"),
        ("shape", [2**60, 4], MemoryError, "may be used"),  # before chunks or columns are counted
        ("shape", [60, 2**60], MemoryError, "may be used"),
    ],
)
def test_zarr_arrays_of_other_types_and_of_any_claim_are_refused(place, field, value, kind, said):
    zarr = pytest.importorskip("zarr")
    zarr.create_array("a.zarr", shape=(60, 4), chunks=(60, 4), dtype="i4", zarr_format=2)
    header = json.loads(Path("a.zarr", ".zarray").read_text())
    Path("a.zarr", ".zarray").write_text(json.dumps(header | {field: value, "fill_value": None}))
    readers = {"shape": (read_features, distributed.read_features)}
    for read in readers.get(field, (read_labels, distributed.read_labels)):
        refused(lambda read=read: read("a.zarr"), kind, "a.zarr", said)


def test_parquet_columns_of_other_types_are_refused(place):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    about = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickle.dumps(Code())}
    odd = {"list": pa.array([[1]] * 60), "record": pa.array([{"x": 1}] * 60)}
    odd["id"] = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * 60, pa.binary(16)))
    labels = {name: pa.array(LABELS[:60, m]) for m, name in enumerate("pq")}
    parquet.write_table(pa.table({**labels, **odd}), "odd.parquet")
    for name in odd:
        refused(lambda name=name: read_labels("odd.parquet", columns=["p", name]), ValueError, repr(name), "type")
        refused(lambda name=name: distributed.read_labels("odd.parquet", columns=["p", name]), ValueError, repr(name))
    assert read_labels("odd.parquet", columns=["p", "q"]).n_clusterings == 2
    schema = pa.schema([pa.field("p", pa.int64(), metadata=about), pa.field("q", pa.int64())])
    parquet.write_table(pa.table(list(labels.values()), schema=schema), "code.parquet")
    assert read_labels("code.parquet").names == ["p", "q"]
    assert not os.path.exists("marker")
    table = pa.table(labels).replace_schema_metadata({b"pandas": b"\xff"})
    parquet.write_table(table, "metadata.parquet")
    refused(lambda: read_labels("metadata.parquet"), ValueError, "metadata.parquet", "write it again")


# --- data outside the file --------------------------------------------------------------------------------------------


def annotated(name, change=None):
    """Write an h5ad file and change it. The same folder has two files with secrets."""
    anndata = pytest.importorskip("anndata")
    h5py = pytest.importorskip("h5py")
    obs = pd.DataFrame(LABELS[:60] % 4, columns=list("abcd"), index=[f"cell {m}" for m in range(60)])
    e, f = obs["a"] * obs["c"] % 3, obs["b"] * obs["d"] % 3
    obs = obs.assign(e=pd.Categorical(e.astype(str)), f=f.astype("Int64"))
    graph = scipy.sparse.csr_matrix((obs["a"].to_numpy()[:, None] == obs["a"].to_numpy()).astype(float))
    X = scipy.sparse.random(60, 20, 0.3, format="csr", rng=np.random.default_rng(0))
    adata = anndata.AnnData(X, obs=obs, obsm={"X_pca": X.toarray()[:, :3]}, layers={"csc": X.tocsc()})
    adata.obsp["connectivities"] = graph
    adata.write_h5ad(name)
    with h5py.File("secret.h5", "w") as file:
        file["numbers"] = np.arange(60) % 5
    Path("secret.bin").write_bytes(b"\0\1\2" * 8000)
    if change is not None:
        with h5py.File(name, "r+") as file:
            change(file, h5py)


def link(place, target="/numbers", by="external"):
    """Return a change of a file that replaces an entry by a link."""

    def change(file, h5py):
        if by == "moved":
            file.move(place, "moved")
            file[place] = h5py.SoftLink("/moved")
            return
        del file[place]
        if by == "chain":
            file["hidden"] = h5py.ExternalLink("secret.h5", target)
        file[place] = h5py.ExternalLink("secret.h5", target) if by == "external" else h5py.SoftLink("/hidden")

    return change


def elsewhere(place, by="external"):
    """Return a change of a file that moves the data of an array to another file."""

    def change(file, h5py):
        shape, about = file[place].shape, dict(file[place].attrs)
        group, _, own = place.rpartition("/")
        del file[place]
        if by == "external":
            made = file[group].create_dataset(own, shape, "i1", external=[("secret.bin", 0, 60 * 20)])
        else:
            layout = h5py.VirtualLayout(shape, "i8")
            layout[:] = h5py.VirtualSource("secret.h5", "numbers", (60,))
            made = file[group].create_virtual_dataset(own, layout)
        made.attrs.update(about)

    return change


def by_absolute_name(file, h5py):
    file["hidden"] = h5py.ExternalLink("secret.h5", "/numbers")
    file["obs"].attrs["column-order"] = np.array(["a", "/hidden"], dtype=h5py.string_dtype())


def by_reference(file, h5py):
    """Change a column to the format before anndata 0.8; its categories are in another file."""
    codes = file["obs/a"]
    hidden = file.create_dataset("hidden", (4,), "i1", external=[("secret.bin", 0, 4)])
    codes.attrs["categories"] = hidden.ref


ELSEWHERE = {
    "a column": link("obs/a"),
    "a column by a chain": link("obs/a", by="chain"),
    "codes": link("obs/e/codes"),
    "categories": link("obs/e/categories", by="chain"),
    "values": link("obs/f/values"),
    "names of the cells": link("obs/_index"),
    "obs": link("obs", by="moved"),
    "uns": link("uns", "/"),
    "data of a column": elsewhere("obs/a"),
    "data of codes": elsewhere("obs/e/codes"),
    "virtual data": elsewhere("obs/a", "virtual"),
    "an absolute name": by_absolute_name,
    "a reference": by_reference,
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_labels_of_an_h5ad_are_in_the_file(place, capsys, name):
    annotated("cells.h5ad", ELSEWHERE[name])
    said = refused_everywhere(place / "cells.h5ad", capsys)
    assert "link" in said or "in another file" in said or "'/hidden'" in said


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (link("X", by="moved"), None),
        (link("X/indices"), None),
        (elsewhere("X/data"), None),
        (link("obsm/X_pca"), "X_pca"),
        (link("obsm", by="moved"), "X_pca"),
        (elsewhere("obsm/X_pca"), "X_pca"),
        (link("layers/csc/data"), "csc"),
    ],
)
def test_features_of_an_h5ad_are_in_the_file(place, change, key):
    annotated("cells.h5ad", change)
    refused(lambda: read_features("cells.h5ad", key=key), ValueError, "cells.h5ad", "write it again")


@pytest.mark.parametrize("by", ["external", "moved", "chain"])
def test_graphs_of_an_h5ad_are_in_the_file(place, by):
    annotated("cells.h5ad", link("obsp/connectivities", by=by))
    refused(lambda: ge.io.read_graph("cells.h5ad"), ValueError, "cells.h5ad", "link")


@pytest.mark.parametrize("claimed", [(2**61, 3), (60, 2**61)])
def test_arrays_of_an_h5ad_that_claim_more_than_can_be_counted(place, claimed):
    def change(file, h5py):
        about = dict(file["obsm/X_pca"].attrs)
        del file["obsm/X_pca"]
        made = file.create_dataset("obsm/X_pca", claimed, "i4", chunks=(16, 3))
        made.attrs.update(about)

    annotated("cells.h5ad", change)
    refused(lambda: read_features("cells.h5ad", key="X_pca"), MemoryError, "cells.h5ad", "may be used")


def test_hard_links_and_other_entries_are_read(place):
    """Hard links are further names of entries in the same file.

    External links do no harm if their entries are not read.
    """

    def change(file, h5py):
        del file["obs/a"]
        file["obs/a"] = file["obs/b"]
        file["uns/elsewhere"] = h5py.ExternalLink("secret.h5", "/numbers")
        file["layers/elsewhere"] = h5py.SoftLink("/nothing")

    annotated("cells.h5ad", change)
    found = read_labels("cells.h5ad", columns=["a", "b"])
    assert (found.codes[:, 0] == found.codes[:, 1]).all()
    assert read_features("cells.h5ad", key="csc").shape == (60, 20)


def test_columns_as_anndata_had_them_before_0_8_are_read(place):
    def change(file, h5py):
        file.create_group("obs/__categories")
        file.move("obs/e/categories", "obs/__categories/e")
        file.move("obs/e/codes", "codes")
        del file["obs/e"]
        file.move("codes", "obs/e")
        file["obs/e"].attrs["categories"] = file["obs/__categories/e"].ref
        file["obs"].attrs["encoding-version"] = "0.1.0"

    annotated("before.h5ad")
    annotated("cells.h5ad", change)
    found = read_labels("cells.h5ad", columns=["a", "e"])
    np.testing.assert_array_equal(found.to_array(), read_labels("before.h5ad", columns=["a", "e"]).to_array())


def test_a_consensus_is_not_added_to_another_file(place, capsys):
    h5py = pytest.importorskip("h5py")
    annotated("cells.h5ad", link("obsm", "/"))
    before = Path("secret.h5").read_bytes()
    run = "run cells.h5ad -k 3 -o out.h5ad --columns a,b,c".split()  # noqa: SIM905
    assert cli.main(run) == 3
    assert "obsm" in capsys.readouterr().err
    assert Path("secret.h5").read_bytes() == before
    annotated("cells.h5ad", lambda file, h5py: file.update({"uns/consensus": h5py.ExternalLink("nowhere.h5", "/")}))
    assert cli.main(run) == 0
    with h5py.File("out.h5ad") as file:
        assert "gpuens" in file["uns/consensus"]


def test_uns_may_be_anything_where_it_is_not_written(place, capsys):
    def change(file, h5py):
        del file["uns"]
        file["uns"] = [1, 2, 3]

    annotated("cells.h5ad", change)
    assert read_labels("cells.h5ad").n_objects == 60
    assert cli.main(["run", "cells.h5ad", "-k", "3", "-o", "out.npy"]) == 0
    capsys.readouterr()
    assert cli.main(["run", "cells.h5ad", "-k", "3", "-o", "out.h5ad"]) == 3
    assert "uns is no group" in capsys.readouterr().err


@pytest.mark.parametrize("filters", [(2**15, ()), (32013, (1, 2))])
def test_data_of_unknown_filters_are_refused(place, filters):
    def change(file, h5py):
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((60,))
        made.set_filter(filters[0], h5py.h5z.FLAG_OPTIONAL, filters[1])
        about = dict(file["obs/a"].attrs)
        del file["obs/a"]
        kind, space = h5py.h5t.STD_I32LE, h5py.h5s.create_simple((60,))
        h5py.h5d.create(file["obs"].id, b"a", kind, space, made)
        file["obs/a"].attrs.update(about)

    annotated("cells.h5ad", change)
    refused(lambda: read_labels("cells.h5ad"), ValueError, "filter", str(filters[0]))


def test_groups_within_themselves_are_refused_at_once(place):
    """Each of 40 groups holds the next one twice, which makes 2**40 paths."""

    def change(file, h5py):
        inner = file["obs/e"]
        for m in range(40):
            outer = file.create_group(f"level {m}")
            outer.attrs.update(inner.attrs)
            outer["codes"] = outer["categories"] = inner
            inner = outer
        del file["obs/e"]
        file["obs/e"] = inner

    annotated("cells.h5ad", change)
    refused(lambda: read_labels("cells.h5ad"), ValueError, "categorical")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("suffix", ge.io.INPUTS)
def test_pipes_sockets_and_devices_are_no_inputs(place, capsys, suffix):
    """Reading a pipe, a socket or a device could last for ever."""
    os.mkfifo(f"pipe{suffix}")
    os.symlink("/dev/zero", f"device{suffix}")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"socket{suffix}")
        for name in (f"pipe{suffix}", f"device{suffix}", f"socket{suffix}"):
            for read in (read_labels, read_features, ge.datasets.load):
                refused(lambda read=read, name=name: read(name), ValueError, name, "a pipe, a socket or a device")
            for line in (f"run {name} -k 2", f"describe {name}", f"score {name} {name}", f"generate {name} -o x.npy"):
                assert cli.main(line.split()) in (2, 3), line
                assert "a pipe, a socket or a device" in capsys.readouterr().err
        np.save("labels.npy", LABELS)
        assert cli.main(f"run labels.npy -k 2 --method tome --features pipe{suffix}".split()) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("kind", [".yaml", ".json", ".jsonl", ".csv"])
def test_pipes_are_no_manifests(place, kind):
    os.mkfifo(f"jobs{kind}")
    refused(lambda: manifest.load(f"jobs{kind}"), ValueError, f"jobs{kind}", "a pipe, a socket or a device")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("other", ["link", "pipe", "link to a folder"])
def test_a_zarr_array_is_within_its_folder(place, capsys, other):
    pytest.importorskip("zarr")
    write_labels("a.zarr", LABELS)
    chunk = next(path for path in Path("a.zarr").rglob("*") if path.is_file() and path.name != "zarr.json")
    Path("secret").write_bytes(chunk.read_bytes())
    if other == "link to a folder":
        os.rename(chunk.parent, "outside")
        os.symlink(os.path.abspath("outside"), chunk.parent)
    else:
        chunk.unlink()
        os.mkfifo(chunk) if other == "pipe" else chunk.symlink_to(os.path.abspath("secret"))
    for read in (read_labels, read_features, distributed.read_labels):
        refused(lambda read=read: read("a.zarr"), ValueError, "a.zarr", other.split()[0])
    assert cli.main(["run", "a.zarr", "-k", "2"]) == 2
    assert "'a.zarr' contains" in capsys.readouterr().err


# --- sparse matrices --------------------------------------------------------------------------------------------------


UNSOUND = {  # the changed number of a sparse matrix
    "far index": ("X/indices", 2**20, None),
    "falling pointers": ("X/indptr", 2**20, None),
    "tall": ("X", 10**13, None),
    "negative index": ("layers/csc/indices", -7, "csc"),
    "far neighbour": ("obsp/connectivities/indices", 2**20, None),
}


@pytest.mark.parametrize(("entry", "value", "key"), UNSOUND.values(), ids=UNSOUND)
def test_sparse_matrices_of_an_h5ad_are_sound(place, capsys, entry, value, key):
    def change(file, h5py):
        if entry == "X":
            file["X"].attrs["shape"] = np.array([value, 20])
        else:
            file[entry][3] = value

    annotated("cells.h5ad", change)
    line = "generate cells.h5ad -o out.npy"
    if "obsp" in entry:
        refused(lambda: ge.io.read_graph("cells.h5ad"), ValueError, "cells.h5ad", "1048576")
        line += " --kind leiden"
    else:
        refused(lambda: read_features("cells.h5ad", key=key), ValueError, "cells.h5ad", "sparse matrix")
        line += f" --key {key}" * (key is not None)
    assert cli.main(line.split()) == 3
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("far", [-1, 7, 2**31 + 1, 2**40])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_sparse_matrices_of_an_npz_are_sound(place, capsys, form, far):
    X = scipy.sparse.random(40, 7, 0.3, format=form, rng=np.random.default_rng(0))
    scipy.sparse.save_npz("X.npz", X)
    with np.load("X.npz") as found:
        arrays = dict(found)
    indices = "col" if form == "coo" else "indices"
    arrays[indices] = arrays[indices].astype(np.int64)
    arrays[indices][5] = far if form != "csc" or far < 0 else far + 40
    np.savez("X.npz", **arrays)
    refused(lambda: read_features("X.npz"), ValueError, "X.npz")
    for kind in ("kmeans", "leiden", "landmark"):
        assert cli.main(f"generate X.npz --kind {kind} -o out.npy".split()) == 3
        assert capsys.readouterr().err.count("\n") == 1


def test_columns_of_any_sparse_matrix_are_chosen(place):
    X = scipy.sparse.random(40, 7, 0.3, format="coo", rng=np.random.default_rng(0))
    scipy.sparse.save_npz("X.npz", X)
    found = read_features("X.npz", columns=[2, 5])
    np.testing.assert_array_equal(found.toarray(), X.toarray()[:, [2, 5]])


# --- long lines and long numbers --------------------------------------------------------------------------------------


def test_lines_and_fields_of_any_length_are_read(place):
    """A separator that is not in a line of 13,000 names makes the line one field, which is longer than csv allows."""
    X = np.random.default_rng(0).integers(0, 9, (3, 13_000))
    names = [f"gene {j}" for j in range(X.shape[1])]
    Path("wide.csv").write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in X)]) + "\n")
    found = read_features("wide.csv")
    assert list(found.columns) == names
    np.testing.assert_array_equal(found.to_numpy(), X)
    before = csv.field_size_limit()
    Path("long.csv").write_text(f"p,q\n{'x' * 200_000},1\ny,2\n{'x' * 200_000},2\n")
    assert read_labels("long.csv").to_array().tolist() == [[0, 0], [1, 1], [0, 1]]
    assert csv.field_size_limit() == before == 131_072
    Path("open.csv").write_text('p,q\n"' + "x,1\n" * 50_000)
    refused(lambda: read_labels("open.csv"), ValueError, "line 2", "never closed")


@pytest.mark.parametrize("n_digits", [301, 400, 5000])
@pytest.mark.parametrize("other", ["1", "1.5", "a"])
def test_numbers_that_no_float_can_hold_are_names(place, n_digits, other):
    Path("long.csv").write_text(f"p,q\n{'9' * n_digits},1\n{other},1\n{'9' * n_digits},2\n")
    found = read_labels("long.csv", missing=[])
    assert (found.codes[0, 0], found.codes[:, 1].tolist()) == (found.codes[2, 0], [0, 0, 1])
    assert found.codes[1, 0] != found.codes[0, 0]


# --- values that are no labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["s", "ns", "D"])
def test_durations_are_no_numbers(unit):
    """NumPy counts timedelta64 as an integer type.

    Read as labels, -1 s would be missing, and other values had no order.
    """
    ens = ge.Ensemble(np.array([[-1, 2], [3, 4], [-1, 2]], dtype=f"m8[{unit}]"))
    assert ens.to_array().tolist() == [[0, 0], [1, 1], [0, 0]]
    assert ge.metrics.nmi(ens.categories[0][ens.codes[:, 0]], [0, 1, 0]) == pytest.approx(1)
    missing = np.array([["NaT", 2], [3, 4], [5, 2]], dtype=f"m8[{unit}]")
    assert ge.Ensemble(missing).to_array().tolist() == [[-1, 0], [0, 1], [1, 0]]


def test_missing_of_pandas_everywhere():
    expected = [[0, 0], [-1, 1], [1, -1]]
    for labels in (
        [[1, pd.NA, 2], ["a", "b", pd.NA]],
        [(1.0, pd.NA, 2.0), np.array(["a", "b", pd.NA], dtype=object)],
        np.array([[1, "a"], [pd.NA, "b"], [2, pd.NA]], dtype=object),
        pd.DataFrame({"p": [1, pd.NA, 2], "q": pd.array(["a", "b", pd.NA], dtype="string")}),
    ):
        assert ge.Ensemble(labels).to_array().tolist() == expected
    refused(lambda: ge.Ensemble(pd.NA), TypeError, "labels", "NAType")
    refused(lambda: ge.consensus(pd.NA), TypeError, "labels", "NAType")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".zarr"])
def test_texts_of_no_characters_are_refused(place, suffix):
    """Python fails at such texts wherever it first reads them."""
    texts = np.array([["ab", "cd"]] * 6)
    texts.view(np.uint32)[4, 1] = 0x110000
    path = place / f"texts{suffix}"
    if suffix == ".zarr":
        zarr = pytest.importorskip("zarr")
        zarr.create_array(path, shape=texts.shape, dtype=texts.dtype, chunks=(3, 2), zarr_format=2)[:] = texts
    else:
        np.save(path, texts) if suffix == ".npy" else np.savez(path, texts)
    refused(lambda: read_labels(path), ValueError, "1114112, which is no character")
    if suffix != ".npz":
        refused(lambda: distributed.read_labels(path, chunk_rows=2), ValueError, "1114112, which is no character")
