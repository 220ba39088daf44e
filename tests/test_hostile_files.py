"""Files that are damaged, lie or attack: each is refused in one sentence, by exit code 3, and leaves nothing behind."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused

import gpuens as ge
from gpuens import cli
from gpuens.io import read_features, read_labels, write_labels
from gpuens.io.arrays import Archive

LABELS = np.random.default_rng(0).integers(0, 9, (500, 4))


def npy(shape, dtype="<i8", data=b"", version=(1, 0)):
    """Return an npy file that claims a shape, whatever its data."""
    file = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    if version == (1, 0):
        np.lib.format.write_array_header_1_0(file, header)
    else:
        np.lib.format.write_array_header_2_0(file, header)
    return file.getvalue() + data


def npz(**members):
    """Return an npz file of bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def patched(archive, offsets, value):
    """Return a zip archive with a field of its local and central headers overwritten."""
    data = bytearray(archive)
    for signature, offset in zip((b"PK\x03\x04", b"PK\x01\x02"), offsets, strict=True):
        at = data.index(signature) + offset
        data[at : at + 2] = struct.pack("<H", value)
    return bytes(data)


def good(suffix, tmp_path):
    path = tmp_path / f"good{suffix}"
    write_labels(path, LABELS)
    data = path.read_bytes()
    path.unlink()
    return data


GOOD_NPY = npy((500, 4), data=LABELS.astype("<i8").tobytes())
OBJECTS = io.BytesIO()
np.save(OBJECTS, np.array([["a", None]], dtype=object), allow_pickle=True)
RECORDS = io.BytesIO()
np.save(RECORDS, np.zeros(3, dtype=[("a", int), ("b", int)]))

CORPUS = {
    "claims 10^12 rows.npy": npy((10**12, 20), data=b"\0" * 160),
    "claims less.npy": npy((2, 2), data=b"\0" * 160),
    "claims more than can be counted.npy": npy((2**62, 2**62)),
    "negative.npy": npy((-3, 2)),
    "of no type.npy": npy((2, 2), "<z9", b"\0" * 32),
    "objects.npy": OBJECTS.getvalue(),
    "records.npy": RECORDS.getvalue(),
    "of the future.npy": b"\x93NUMPY\x09\x00" + GOOD_NPY[8:],
    "code in the header.npy": GOOD_NPY.replace(b"(500, 4)", b"exit(3) "),
    "a long header.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 100,
    "of no dimension.npy": npy((), data=b"\0" * 8),
    "of three.npy": npy((1, 2, 2), data=b"\0" * 32),
    "empty.npz": npz(),
    "text.npz": npz()[:0] + b"hello",
    "no arrays.npz": npz(a=b"hello"),
    "claims 10^12 rows.npz": npz(labels=npy((10**12, 20), data=b"\0" * 160)),
    "encrypted.npz": patched(npz(labels=GOOD_NPY), (6, 8), 0x1),
    "unknown compression.npz": patched(npz(labels=GOOD_NPY), (8, 10), 77),
    "objects.npz": npz(labels=OBJECTS.getvalue()),
    "objects among others.npz": npz(a=npy((2,), data=b"\0" * 16), b=OBJECTS.getvalue()),
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
    """Check that a file is refused by Python and by the command line, which leaves nothing behind."""
    before = sorted(path.parent.iterdir())
    with pytest.raises((ValueError, TypeError, MemoryError)) as error:
        read_labels(path)
    one_sentence(error.value)
    code = cli.main(["run", str(path), "-k", "2"])
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert err.startswith("gpuens: ")
    assert err.count("\n") == 1
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
    """Whatever a damaged file says, it is an ensemble or one sentence: no other error, and no other class of error."""
    rng = np.random.default_rng(seed)
    data = bytearray(good(suffix, place))
    for at in rng.integers(0, min(len(data), 4000), 5):  # headers come first in most kinds
        data[at] ^= 1 << int(rng.integers(8))
    path = place / f"flipped{suffix}"
    path.write_bytes(data[: len(data) - int(rng.integers(2)) * int(rng.integers(50))])
    try:
        assert read_labels(path, columns="*", missing=[]).n_objects > 0
    except (ValueError, TypeError, MemoryError) as error:
        one_sentence(error)
    except UserWarning:  # a clustering that has become constant
        pass


def test_a_header_is_read_before_its_data(place, monkeypatch):
    """What is claimed, even truly, is compared with the memory that may be taken before a byte of it is read."""
    labels = np.zeros((10**6, 2), dtype=np.int64)
    np.savez_compressed("bomb.npz", labels=labels)
    assert (place / "bomb.npz").stat().st_size < 20_000
    np.save("large.npy", labels)
    pd.DataFrame(labels).add_prefix("c").to_parquet("bomb.parquet")
    pytest.importorskip("anndata")
    write_labels("bomb.h5ad", labels)
    monkeypatch.setenv("GPUENS_MEMORY", "5MB")
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("read before it was refused"))
    monkeypatch.setattr(pd, "read_parquet", lambda *_, **__: pytest.fail("read before it was refused"))
    for name, claimed in {"bomb.npz": "16.0 MB", "large.npy": "18.0 MB", "bomb.parquet": "16.0 MB"}.items():
        refused(lambda name=name: read_labels(name), MemoryError, claimed, "5.0 MB may be used")
    refused(lambda: read_labels("bomb.h5ad"), MemoryError, "bomb.h5ad", "may be used")
    with Archive("bomb.npz") as archive:
        assert archive.header("labels").shape == (10**6, 2)


def test_obs_that_is_no_table(place, capsys):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata")
    for name, value in {"array": np.zeros((3, 3)), "number": 5, "text": "obs"}.items():
        with h5py.File(f"{name}.h5ad", "w") as file:
            file["obs"] = value
        refused_everywhere(place / f"{name}.h5ad", capsys)
    with h5py.File("group.h5ad", "w") as file:
        file.create_group("obs")["a"] = [1, 2, 3]
    refused_everywhere(place / "group.h5ad", capsys)


@pytest.mark.parametrize("unit", ["s", "ns", "D"])
def test_durations_are_no_numbers(unit):
    """NumPy counts timedelta64 among the integers: -1 s was a missing label, and others could not be ordered."""
    ens = ge.Ensemble(np.array([[-1, 2], [3, 4], [-1, 2]], dtype=f"m8[{unit}]"))
    assert ens.to_array().tolist() == [[0, 0], [1, 1], [0, 0]]
    missing = np.array([["NaT", 2], [3, 4], [5, 2]], dtype=f"m8[{unit}]")
    assert ge.Ensemble(missing).to_array().tolist() == [[-1, 0], [0, 1], [1, 0]]
    assert ge.metrics.nmi(ens.categories[0][ens.codes[:, 0]], [0, 1, 0]) == pytest.approx(1)


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
