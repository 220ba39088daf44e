"""Text tables: separators, names, words for missing labels, numbers, strings.

No field may change or vanish silently.
"""

import csv
import gzip
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import one_sentence, refused

import gpuens as ge
from gpuens.io import layout, read_features, read_label_file, read_labels, write_labels
from gpuens.io.formulas import escaped, unescaped


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a text to a file and returns the path."""

    def write(text, name="labels.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


def codes_of(path, **options):
    return read_labels(path, **options).to_array().tolist()


# --- fields, read one by one ------------------------------------------------------------------------------------------


def literally(text, missing=()):
    """Return the codes of each column by the rules of `gpuens.io.read_labels`, one field at a time."""
    _, *rows = [[field.strip() for field in row] for row in csv.reader(text.splitlines(), skipinitialspace=True)]
    columns = []
    for column in zip(*rows, strict=True):
        known = [field for field in column if field and field not in {*missing, "NA", "nan"}]
        if all(re.fullmatch(r"-?(0|[1-9]\d*)(\.0)?", field) for field in known):
            of = {field: int(field.removesuffix(".0")) for field in known}
        else:
            of = {field: field for field in known}
        values = sorted({value for value in of.values() if value is not None and value != -1})
        columns.append([values.index(of[field]) if of.get(field) in values else -1 for field in column])
    return np.array(columns).T.tolist()


def a_random_table(rng):
    kinds = [
        ["0", "1", "2", "10", "", "-1"],
        ["1.0", "2", "nan", "", "3.0"],
        ["a", "b", "NA", "nan", "", "01", "1"],
        ["01", "1", "001"],
        [str(2**53), str(2**53 + 1), str(2**70), ""],
        ['"x, y"', "x", ' "x"', "x ", '"say ""x"""'],
    ]
    n_rows, n_columns = int(rng.integers(8, 40)), int(rng.integers(2, 6))
    columns = [rng.choice(kinds[rng.integers(len(kinds))], n_rows) for _ in range(n_columns)]
    columns.append(np.array(["5"] * n_rows))  # this column has no missing label, so that every object has a label
    lines = [",".join(f"name {m}" for m in range(len(columns))), *map(",".join, zip(*columns, strict=True))]
    return rng.choice(["\n", "\r\n"]).join(lines) + "\n"


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_every_field_means_what_the_rules_say(table, seed):
    text = a_random_table(np.random.default_rng(seed))
    missing = [["nan", "NA"], ["nan", "NA", "x"], ["nan", "NA", "b", "01"]][seed % 3]
    columns = range(len(text.splitlines()[0].split(",")))
    assert codes_of(table(text), missing=missing, columns=columns) == literally(text, missing)


@pytest.mark.parametrize("seed", range(20))
def test_irregular_rows_are_those_that_csv_finds(seed):
    rng = np.random.default_rng(seed)
    rows = [",".join(rng.choice(["a", "", '"b,c"', '"d\ne"', '5" x', '"f""g"'], 3)) for _ in range(30)]
    text = "\n".join(rows) + "\n" * int(rng.integers(2))
    whole = np.frombuffer(text.encode(), np.uint8)
    assert layout.find_irregular_row(whole, ord(","), 3, 3) == (0, 0, 30)
    wrong = int(rng.integers(30))
    rows[wrong] = rng.choice(["a,b", "a", "a,b,c,d", ""])
    line = "\n".join(rows[:wrong]).count("\n") + 1 + (wrong > 0)
    counted = len(next(csv.reader([rows[wrong]]), [""])) or 1
    found = layout.find_irregular_row(np.frombuffer("\n".join(rows).encode(), np.uint8), ord(","), 3, 3)
    assert found == (line, counted, wrong) or (wrong == 29 and rows[wrong] == "")


def test_a_table_in_many_pieces_is_one(table):
    """pandas reads large tables in pieces, each with categories of its own."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 300, (60_000, 3))
    labels[:, 2] = np.sort(labels[:, 2])
    text = "a,b,c\n" + "\n".join(map(",".join, labels.astype(str).tolist())) + "\n"
    ens = read_labels(table(text), columns=["a", "b", "c"])
    np.testing.assert_array_equal(ens.codes, labels)
    assert [c.dtype.kind for c in ens.categories] == ["i"] * 3


# --- separators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("names", ["p,q,r\n", ""])
def test_the_separator_is_told_from_the_first_lines(table, name, separator, names):
    path = table((names + "0,3,1\n0,3,1\n5,,1\n5,7,2\n").replace(",", separator), name)
    assert codes_of(path) == [[0, 0, 0], [0, 0, 0], [1, -1, 0], [1, 1, 1]]
    assert codes_of(path, sep=separator) == codes_of(path)


def test_separators_that_cannot_be_told(table):
    both = table("a,b;c\na,c;d\nb,c;c\na,c;d\n")
    refused(lambda: read_labels(both, header=False), ValueError, "labels.csv", "',' or ';'", "sep")
    assert codes_of(both, header=False, sep=";") == [[0, 0], [1, 1], [2, 0], [1, 1]]
    assert codes_of(both, header=False, sep=",") == [[0, 0], [0, 2], [1, 1], [0, 2]]
    refused(lambda: read_labels(table("label\na|b\na|c\n")), ValueError, "line 2", "'|'", "sep=")
    assert codes_of(table("label\na|b\na|c\n"), sep=",") == [[0], [1]]
    # a name or a label may contain another separator, or a blank
    assert codes_of(table('p,q\n"a;x",1\nb,2\n')) == [[0, 0], [1, 1]]
    assert codes_of(table("1 2\n1 3\n2 3\n")) == [[0, 0], [0, 1], [1, 1]]  # the default format of np.savetxt
    assert codes_of(table("label\nB cell\nT cell\nB cell\n")) == [[0], [1], [0]]
    assert codes_of(table("cell type\nT cell\nB cell\nT cell\n")) == [[1], [0], [1]]
    assert codes_of(table("label\ncluster 1\ncluster 2\ncluster 1\n")) == [[0], [1], [0]]


@pytest.mark.parametrize("sep", ["", ",,", '"', "\n", "é", 3])
def test_what_separates_nothing(table, sep):
    refused(lambda: read_labels(table("p,q\n1,2\n"), sep=sep), ValueError, "sep", repr(sep))


def test_decimal_commas_are_numbers(table):
    path = table("p;q\n1,0;2\n3,0;2\n1;3\n")
    assert codes_of(path) == [[0, 0], [1, 0], [0, 1]]
    np.testing.assert_array_equal(read_features(path), [[1, 2], [3, 2], [1, 3]])
    refused(lambda: read_labels(table("p;q\n1,5;2\n3,0;2\n1;3\n")), ValueError, "'p'", "1.5")


# --- truncated rows and bytes that are no text ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("p,q\n1,2\n1\n2,3\n", "1 field(s) in line 3"),
        ("p,q\n1,2\n1,2,3\n2,3\n", "3 field(s) in line 3"),
        ("p;q\n1;2\n1\n2;3\n", "1 field(s) in line 3"),
        ("p,q,r\n1,2\n1,2\n", "2 field(s) in line 2"),
        ("p,q\n1,2\n\n2,3\n", "nothing in line 3, where 2 fields"),
        ('p,q\n"1\n\n",2\n\n2,3\n', "nothing in line 5"),
        ("p,q\n1,2\n1\0,2\n", "NUL byte in line 3"),
        ("p,q\n1,2\n\0,2\n", "NUL byte in line 3"),
        ('p,q\n"1,2\n1,2\n', "quotation mark in line 2"),
        ("p,q\n", "has names but no objects"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("\ufeff", "is empty"),
        ("p,q\nä,2\n".encode("latin-1"), "UTF-8 or UTF-16"),
        (b"p,q\n" + b"a,2\n" * 40_000 + b"\xff,2\n", "labels.csv"),
        ("p,q\n1,2\n".encode("utf-16-le"), "NUL byte in line 1"),
    ],
)
def test_damaged_text_is_refused_by_its_line(table, text, mentioned):
    refused(lambda: read_labels(table(text)), ValueError, mentioned)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_text_of_other_encodings(table, encoding):
    path = table('"p, ä"\tq\nä\t2\nb\t3\n', "labels.tsv", encoding)
    ens = read_labels(path)
    assert (ens.names, ens.categories[0].tolist()) == (["p, ä", "q"], ["b", "ä"])


def test_packed_text_is_unpacked_no_further_than_memory_allows(table, monkeypatch):
    monkeypatch.setenv("GPUENS_MEMORY", "10MB")
    bomb = table(gzip.compress(b"p,q\n" + b"1,2\n" * 10_000_000), "labels.csv.gz")
    assert bomb.stat().st_size < 100_000
    refused(lambda: read_labels(bomb), MemoryError, "labels.csv.gz", "10.0 MB may be used")
    monkeypatch.setenv("GPUENS_MEMORY", "1kB")
    refused(lambda: read_labels(table("p,q\n" + "1,2\n" * 1000)), MemoryError, "labels.csv", "1.0 kB may be used")


# --- names ------------------------------------------------------------------------------------------------------------


def test_names_that_are_labels_are_not_guessed(table):
    path = table("a,x\nb,y\na,y\nb,y\n")
    refused(lambda: read_labels(path), ValueError, "'a' in the first line", "header=False", "--no-header")
    assert codes_of(path, header=False) == [[0, 0], [1, 1], [0, 1], [1, 1]]
    with pytest.warns(UserWarning, match="constant"):
        assert read_labels(path, header=True).names == ["a", "x"]
    numbers = table("1,q\n1,5\n2,6\n1,6\n")
    refused(lambda: read_labels(numbers), ValueError, "'1' in the first line")
    unnamed = table("cell,0,1,2\na,0,1,1\nb,1,0,0\nc,0,1,2\nd,1,0,1\n")  # pandas writes these names for unnamed columns
    assert read_labels(unnamed, columns=["0", "1"]).names == ["0", "1"]
    refused(lambda: read_labels(path, header=1), TypeError, "header", "1")


def test_a_first_line_that_counts_is_doubted(table):
    path = table("0,1,2\n0,1,0\n1,1,2\n0,0,2\n")
    with pytest.warns(UserWarning, match="counts the columns") as caught:
        assert read_labels(path).n_objects == 4
    one_sentence(caught[0].message)
    assert [read_labels(path, header=header).n_objects for header in (True, False)] == [3, 4]


def pandas_table(n=60, *, sep=",", index=None, index_label=None, columns=4, seed=0):
    """Return labels (n, columns) and the text that pandas writes for them."""
    labels = np.random.default_rng(seed).integers(0, 3, (n, columns))
    labels[0] = 0
    return labels, pd.DataFrame(labels, index=index).to_csv(sep=sep, index=index is not None, index_label=index_label)


IDS = {
    "texts": [f"s{i}" for i in range(60)],
    "numbers": [7 * i + 101 for i in range(60)],
    "texts like numbers": [f"{i:04}" for i in range(60)],
    "counted": list(range(60)),
    "counted from 1": list(range(1, 61)),
    "texts, some twice": [f"s{i % 50}" for i in range(60)],
}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("columns", [1, 2, 4, 12])
@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.csv.gz"])
def test_the_index_that_pandas_writes_is_one(table, name, columns, ids):
    labels, text = pandas_table(sep="\t" if "tsv" in name else ",", index=IDS[ids], columns=columns)
    assert text.split()[0].strip(",") == ",".join(map(str, range(columns))) or "tsv" in name
    path = table(gzip.compress(text.encode()) if name.endswith("gz") else text, name)
    found = read_label_file(path)
    assert found.ensemble.to_array().tolist() == ge.Ensemble(labels).to_array().tolist()
    assert found.ensemble.names == list(range(columns))
    assert found.ids.tolist() == (list(range(60)) if ids == "counted" else list(map(str, IDS[ids])))
    assert isinstance(found.ids, pd.RangeIndex) == (found.ensemble.index is None) == (ids == "counted")
    np.testing.assert_array_equal(read_features(path), labels)
    assert read_label_file(path, header=True).ensemble.n_objects == 60


@pytest.mark.parametrize("ids", IDS)
def test_the_index_that_r_writes_is_one(table, ids):
    labels, text = pandas_table(index=IDS[ids])
    path, expected = table(text[1:]), ge.Ensemble(labels).to_array().tolist()
    if ids == "texts, some twice":  # an index has no repeated texts, so that the first line may be damaged
        refused(lambda: read_labels(path), ValueError, "5 field(s) in line 2")
    else:
        assert codes_of(path) == expected
    assert codes_of(path, header=True) == expected
    refused(lambda: read_labels(path, header=False), ValueError, "5 field(s) in line 2")
    if ids in ("texts", "numbers"):  # the default format of R's write.table
        assert codes_of(table(text[1:].replace(",", " "), "labels.txt.csv")) == expected


@pytest.mark.parametrize("ids", ["abc", "123"])
@pytest.mark.parametrize("names", ['"","p","q"', "p,q", "label"])
def test_row_names_as_r_writes_them(table, names, ids):
    rows = zip(ids, ["0,3", "1,3", "1,4"] if "q" in names else "pqp", strict=True)
    found = read_label_file(table(f"{names}\n" + "".join(f'"{name}",{row}\n' for name, row in rows)))
    assert found.ensemble.names == (["p", "q"] if "q" in names else ["label"])
    assert found.ensemble.to_array().tolist() == ([[0, 0], [1, 0], [1, 1]] if "q" in names else [[0], [1], [0]])
    assert (found.ids.tolist(), found.ids.name) == (list(ids), None)


def test_numbers_as_names_beside_an_index(table):
    _, text = pandas_table(index=IDS["texts"])
    by_k = text.replace(",0,1,2,3", ",2,3,4,5", 1)  # column names may be numbers of clusters
    with pytest.warns(UserWarning, match="empty first field .* names of the columns; say header=False") as caught:
        ens = read_labels(table(by_k))
    one_sentence(caught[0].message)
    assert (ens.names, ens.n_objects) == (list("2345"), 60)
    assert read_labels(table(",0\n5,3\n6,2\n")).n_objects == 2
    assert read_labels(table(",0\n5,3\n6,2\n"), header=False).n_objects == 3


@pytest.mark.parametrize("columns", [2, 3, 4, 12])
def test_columns_that_pandas_counts_are_named(table, columns):
    labels, text = pandas_table(columns=columns)
    path = table(text)
    for read in (lambda: read_labels(path).to_array(), lambda: read_features(path).to_numpy()):
        with pytest.warns(UserWarning, match="counts the columns") as caught:
            found = read()
        assert ("say header=False" if columns > 3 else "say header=True") in one_sentence(caught[0].message)
        assert len(found) == (60 if columns > 3 else 61)  # the first line 0,1 or 0,1,2 may be an object's labels
    np.testing.assert_array_equal(read_features(path, header=True), labels)


def test_numbers_that_no_other_object_has_may_be_names(table):
    labels, _ = pandas_table(columns=3)
    labels[(labels == 2).any(axis=1)] = 1
    path = table("2,4,8\n" + "".join(",".join(map(str, row)) + "\n" for row in labels.tolist()))
    with pytest.warns(UserWarning, match="2, 4, 8.* labels of no other object; say header=True") as caught:
        assert read_labels(path).n_objects == 61
    one_sentence(caught[0].message)
    assert read_labels(path, header=True).names == ["2", "4", "8"]
    assert read_labels(path, header=False).n_objects == 61


def test_features_whose_columns_are_counted(table):
    X = np.random.default_rng(0).normal(size=(30, 2))
    for columns in (1, 2):
        path = table(pd.DataFrame(X[:, :columns]).to_csv(index=False))
        with pytest.warns(UserWarning, match="counts the columns"):
            np.testing.assert_array_equal(read_features(path), X[:, :columns])
    np.testing.assert_array_equal(read_features(table(pd.DataFrame(X).to_csv())), X)
    np.testing.assert_array_equal(read_features(table(pd.DataFrame(X).to_csv(index=False, header=False))), X)
    assert read_labels(table("0\n" + "1\n0\n" * 20)).n_objects == 41  # no warning
    assert read_labels(table("1,2\n2,2\n1,1\n")).n_objects == 3


# --- missing labels ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("none", "null"), ("?", "unknown")])
def test_other_words_count_as_clusters(table, words):
    path = table("p,q\n{1},1\n,2\n{0},2\n01,2\n1,2\n".format(*words))
    with pytest.warns(UserWarning, match=f"'{words[1]}', '{re.escape(words[0])}' in 'p' count as clusters") as caught:
        ens = read_labels(path)
    one_sentence(caught[0].message)
    assert ens.categories[0].tolist() == sorted(["01", "1", *words])
    assert (ens.to_array()[:, 0] == -1).tolist() == [False, True, False, False, False]
    assert read_labels(path, missing=[]).n_clusters == 6
    assert codes_of(path, missing=[words[1], "01"])[0] == [-1, 0]
    assert read_labels(path, missing=words[1]).categories[0].tolist() == sorted(["01", "1", words[0]])


def test_words_among_numbers_are_not_guessed(table):
    path = table("p,q\n?,1\n5,2\nunknown,2\n-1,3\n6,3\n")
    refused(lambda: read_labels(path), ValueError, "'p'", "numbers except '?'", "missing=['?', 'unknown']")
    assert codes_of(path, missing=["?", "unknown"]) == [[-1, 0], [0, 1], [-1, 1], [-1, 2], [1, 2]]
    assert read_labels(path, missing=[]).categories[0].tolist() == ["-1", "5", "6", "?", "unknown"]
    with pytest.warns(UserWarning, match="'-1' in 'p' count as clusters"):
        read_labels(table("p,q\n-1,1\n01,2\n02,2\n"))


# --- spreadsheets -----------------------------------------------------------------------------------------------------

DANGEROUS = ["=1+1", "+x", "-x", "@sum", "'=1", "''@", "'quoted'", "plain", "a,b", 'say "x"', "-1", "01"]


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.csv.gz"])
def test_what_a_spreadsheet_would_run_is_quoted_and_read_back_equal(tmp_path, name):
    path = tmp_path / name
    labels = np.array([[text, "x" if m % 2 else "@y"] for m, text in enumerate(DANGEROUS)])
    write_labels(path, labels, names=["=p", "q"], ids=pd.Index([f"={m}" for m in range(len(labels))], name="cell"))
    packed = gzip.open if name.endswith("gz") else open
    with packed(path, "rt") as file:
        rows = list(csv.reader(file, delimiter="\t" if "tsv" in name else ","))
    assert not any(field[0] in "=+-@" for row in rows for field in row)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_label_file(path, columns=["=p", "q"], id_column="cell", missing=[])
    assert found.ids.tolist() == [f"={m}" for m in range(len(labels))]
    assert found.ensemble.names == ["=p", "q"]
    for m in range(2):
        values = found.ensemble.categories[m][found.ensemble.codes[:, m]]
        assert values.tolist() == labels[:, m].tolist()


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.csv.gz", "labels.tsv.gz"])
def test_the_title_of_the_ids_is_no_formula_either(tmp_path, name):
    path = tmp_path / name
    title = '=HYPERLINK("http://x","y")'
    write_labels(path, [0, 1, 1], ids=pd.Index(list("uvw"), name=title), beside={"@share": np.array([0.5, 1, 1])})
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if name.endswith("gz") else raw).decode()
    first = next(csv.reader(text.splitlines(), delimiter="\t" if "tsv" in name else ","))
    assert first == [f"'{title}", "label", "'@share"]
    found = read_label_file(path, columns="label", id_column=title)
    assert (found.ids.name, found.ids.tolist()) == (title, ["u", "v", "w"])


@pytest.mark.parametrize("text", ["", " a", "a ", "a\0"])
def test_strings_that_text_would_change_are_refused(tmp_path, text):
    labels = np.array([["b", "x"], [text + "y" if text == "a\0" else text, "x"]])
    refused(lambda: write_labels(tmp_path / "a.csv", labels), ValueError, "labels", "parquet or npy")
    write_labels(tmp_path / "a.npy", labels)


def test_escapes_lose_nothing():
    texts = ["'" * n + text for n in range(4) for text in ("=a", "a", "", "@", "\tx")]
    assert [unescaped(escaped(text)) for text in texts] == texts
    assert len(set(map(escaped, texts))) == len(texts)


# --- the choice of columns --------------------------------------------------------------------------------------------

OBS = "cell,leiden_1,leiden_2,batch,x\n" + "".join(f"c{i},{i % 3},{i % 4},{i % 2},{i % 5}\n" for i in range(40))


def test_patterns_exclusions_and_ids(table):
    path = table(OBS)
    assert read_labels(path, columns="leiden_*").names == ["leiden_1", "leiden_2"]
    assert read_labels(path, columns=["x", "leiden_?"]).names == ["x", "leiden_1", "leiden_2"]
    assert read_labels(path, columns=["*_2", "*"], exclude="batch", id_column=0).names[:2] == ["leiden_2", "leiden_1"]
    found = read_label_file(path, id_column="cell", exclude=["batch", "*_2"])
    assert found.ensemble.names == ["leiden_1", "x"]
    assert (found.ids.name, found.ids[0], len(found.ids)) == ("cell", "c0", 40)
    refused(lambda: read_labels(path, columns="louvain_*"), ValueError, "columns", "'louvain_*'", "'leiden_1'")
    refused(lambda: read_labels(path, exclude="y"), ValueError, "exclude", "'y'")
    refused(lambda: read_labels(path, exclude="*"), ValueError, "columns", "none is left")
    refused(lambda: read_labels(path, exclude=3.5), TypeError, "exclude must be names or numbers of columns", "3.5")
    refused(lambda: read_labels(path, exclude=[]), ValueError, "exclude is empty")
    refused(lambda: read_labels(path, id_column="leiden_*"), ValueError, "id_column", "names 2")
    refused(lambda: read_labels(path, id_column="z"), ValueError, "id_column", "'z'")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz", ".npy"])
@pytest.mark.parametrize("ids", ["strings", "numbers"])
def test_an_id_column_is_no_clustering(tmp_path, suffix, ids):
    n = 30
    cell = np.array([f"c{i}" for i in range(n)]) if ids == "strings" else np.arange(n) * 7 % 1009
    frame = pd.DataFrame({"cell": cell, "p": np.arange(n) % 3, "q": np.arange(n) % 4})
    path = tmp_path / f"labels{suffix}"
    write = {
        ".parquet": frame.to_parquet,
        ".npz": lambda path: np.savez(path, **{**frame, "cell": cell}),
        ".npy": lambda path: np.save(path, frame.to_numpy().astype(cell.dtype.kind)),
    }
    write.get(suffix, lambda path: frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ","))(path)
    named = [0, 1] if suffix == ".npy" else ["cell", "p"]
    for options in ({}, {"id_column": named[0]}):
        read = read_label_file(path, **options)
        assert read.ensemble.n_clusterings == 2
        assert read.ids.astype(str).tolist() == read.ensemble.index.astype(str).tolist() == cell.astype(str).tolist()
        assert options or read.ids.name == ("id" if suffix == ".npy" else "cell")
    assert read_labels(path, columns=named).n_clusterings == 2
    assert read_labels(path, exclude=named[0]).n_clusterings == 2


def test_few_objects_and_single_columns_have_no_ids(table):
    assert read_labels(table("p,q\n1,2\n3,4\n5,6\n")).n_clusterings == 2
    assert read_labels(table("p\n" + "".join(f"{i}\n" for i in range(30)))).n_clusters == 30


def test_objects_without_labels_are_dropped_on_request(table):
    path = table("cell,p,q\na,1,2\nb,,\nc,2,3\nd,-1,\n")
    refused(lambda: read_labels(path, id_column="cell"), ValueError, "2 object(s) have no label", "drop_unlabelled")
    found = read_label_file(path, id_column="cell", drop_unlabelled=True)
    assert found.labelled.tolist() == [True, False, True, False]
    assert found.ensemble.to_array().tolist() == [[0, 0], [1, 1]]
    assert found.ids.tolist() == list("abcd")
    assert read_label_file(path, columns=["cell", "p"], drop_unlabelled=True).labelled is None
    assert read_labels(path, id_column="cell", drop_unlabelled=True).n_objects == 2


@pytest.mark.filterwarnings("ignore:constant clusterings")
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet", ".h5ad", ".zarr"])
def test_transposed_files_are_refused_alike(tmp_path, suffix):
    labels = np.random.default_rng(0).integers(0, 3, (5, 40))
    path = tmp_path / f"labels{suffix}"
    write_labels(path, labels)
    words = ("labels", "5, 40", "40 clusterings of 5 object(s)", "transpose=True", "wide=True")
    refused(lambda: read_labels(path), ValueError, *words)
    assert read_labels(path, columns=[0, 3]).n_clusterings == 2
    np.testing.assert_array_equal(read_labels(path, wide=True).codes, ge.Ensemble(list(labels.T)).codes)
    assert len(read_labels(path, columns=range(7), wide=True, drop_unlabelled=True).names) == 7


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".h5ad", ".csv"])
def test_words_are_missing_in_every_kind_of_file(tmp_path, suffix):
    path = tmp_path / f"labels{suffix}"
    write_labels(path, np.array([["?", "a"], ["b", "z"], ["c", "?"]]))
    assert codes_of(path, missing="?", columns=[0, 1]) == [[-1, 0], [0, 1], [1, -1]]
    write_labels(path, np.array([[0, 1], [1, 0], [2, 3]]))
    assert codes_of(path, missing=["0"]) == [[-1, 0], [0, -1], [1, 1]]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".h5ad", ".csv", ".zarr"])
def test_texts_mean_the_same_in_every_kind_of_file(tmp_path, suffix):
    path = tmp_path / f"labels{suffix}"

    def write(labels):
        """Write strings (n, 2), unescaped."""
        frame = pd.DataFrame(labels, columns=["p", "q"])
        if suffix == ".h5ad":
            obs = frame.astype("category").set_axis([f"c{i}" for i in range(len(frame))])
            pytest.importorskip("anndata").AnnData(obs=obs).write_h5ad(path)
        elif suffix == ".zarr":
            pytest.importorskip("zarr").save_array(path, labels, mode="w", zarr_format=2)
        elif suffix == ".npz":
            np.savez(path, p=labels[:, 0], q=labels[:, 1])
        elif suffix == ".npy":
            np.save(path, labels)
        else:
            frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)

    numbers = np.array([["-1", "0"], ["0", "0"], ["1", "-1"], ["1", "1"]])
    write(numbers)
    assert codes_of(path) == codes_of(path, missing=[]) == [[-1, 0], [0, 0], [1, -1], [1, 1]]
    write(np.where(numbers == "1", "b", numbers))
    said = r"'-1' in '?[0p]'?, '?[1q]'? count as clusters; .* say missing=\['-1'\] \(--m"
    with pytest.warns(UserWarning, match=said):
        assert codes_of(path) == [[0, 1], [1, 1], [2, 0], [2, 2]]
    assert codes_of(path, missing=[]) == [[0, 1], [1, 1], [2, 0], [2, 2]]
    assert codes_of(path, missing=["-1"]) == [[-1, 0], [0, 0], [1, -1], [1, 1]]
    write(np.array([["null", "a"], ["a", "1"], ["b", "1.0"], ["b", "1"]]))
    with pytest.warns(UserWarning, match="count as") as caught:
        assert codes_of(path) == [[2, 2], [0, 0], [1, 1], [1, 0]]
    first, second = (one_sentence(warning.message) for warning in caught)
    assert ("'null' in" in first, "'1' and '1.0' in" in second) == (True, True)


# --- columns unlike the others ----------------------------------------------------------------------------------------


def clusterings(n=400, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n)
    found = {f"leiden_{m}": np.where(rng.random(n) < 0.2, rng.integers(0, 5, n), truth) for m in range(4)}
    return pd.DataFrame(found), truth, rng


@pytest.mark.parametrize(
    ("name", "make", "why"),
    [
        ("batch", lambda rng, truth: truth, "by its name"),
        ("Cell_Type", lambda rng, truth: truth, "by its name"),
        ("Donor ID", lambda rng, truth: truth, "by its name"),
        ("id", lambda rng, truth: np.arange(400) // 2, "by its name"),
        ("n_counts", lambda rng, truth: rng.integers(0, 300, 400).astype(float), "values where the others have"),
        ("plate", lambda rng, truth: rng.integers(0, 3, 400), "better than chance"),
    ],
)
def test_columns_that_are_not_like_the_others(table, name, make, why):
    frame, truth, rng = clusterings()
    own = list(frame.columns)
    frame[name] = make(rng, truth)
    with pytest.warns(UserWarning, match="as it is unlike the clusterings") as caught:
        found = ge.Ensemble(frame)
    assert (found.names, found.left_out) == (own, [name])
    np.testing.assert_array_equal(found.codes, ge.Ensemble(frame[own]).codes)
    said = one_sentence(caught[0].message)
    for part in (f"labels: {name!r} (", why, "pass gpuens.Ensemble(labels, names=list(labels.columns))."):
        assert part in said
    assert ge.Ensemble(frame, names=list(frame.columns)).names == [*own, name]  # the warning advises this call
    path = table(frame.to_csv(index=False))
    with pytest.warns(UserWarning, match=re.escape(why)) as caught:
        assert read_labels(path).names == own
    assert len(caught) == 1
    assert read_labels(path, columns="*").names == [*own, name]  # no warning, because the user chose the columns
    assert read_labels(path, exclude=name).names == own


@pytest.mark.filterwarnings("ignore:labels. .* left out")
def test_what_is_left_out_counts_for_nothing():
    """Excluded columns label no object, and new objects need not have them.

    If no column would remain, none is excluded.
    """
    frame, truth, _ = clusterings()
    frame["truth"], frame["batch"] = truth, np.arange(400) % 3
    fitted = ge.LWGP(5).fit(frame)
    np.testing.assert_array_equal(fitted.labels_, ge.LWGP(5).fit(frame.drop(columns=["truth", "batch"])).labels_)
    assert (fitted.n_features_in_, list(fitted.feature_names_in_)) == (4, [f"leiden_{m}" for m in range(4)])
    np.testing.assert_array_equal(fitted.predict(frame), fitted.labels_)
    np.testing.assert_array_equal(fitted.predict(frame.drop(columns="batch")), fitted.labels_)
    refused(lambda: fitted.predict(frame.drop(columns="leiden_0")), ValueError, "X has 3 features", "expecting 4")
    refused(lambda: fitted.predict(frame.assign(more=0)), ValueError, "X has 5 features")
    assert ge.Ensemble(frame[["truth", "batch"]]).names == ["truth", "batch"]
    assert ge.Ensemble(frame[["truth"]]).names == ["truth"]
    frame.loc[7, [f"leiden_{m}" for m in range(4)]] = -1
    refused(lambda: ge.Ensemble(frame), ValueError, "7")
    ensemble, labelled = ge.Ensemble.of_labelled(frame)
    assert (ensemble.n_objects, ensemble.n_clusterings, labelled.tolist().index(False)) == (399, 4, 7)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
@pytest.mark.parametrize("n", [400, 50_000])
def test_clusterings_that_are_there_twice_are_named(tmp_path, suffix, n):
    frame, _, rng = clusterings(n)
    frame.loc[rng.random(n) < 0.1, "leiden_1"] = -1
    names = np.array([7, 3, 9, 0, 1, -1])
    frame["copy"] = frame["leiden_2"]
    frame["renamed"] = names[frame["leiden_1"]]
    frame["nearly"] = frame["leiden_3"]
    frame.loc[n - 1, "nearly"] = 5
    path = tmp_path / f"labels{suffix}"
    write_labels(path, frame.to_numpy(), names=list(frame))
    with pytest.warns(UserWarning, match="2 of 7 clusterings repeat another") as caught:
        read_labels(path)
    pairs = "4 as 2, 5 as 1" if suffix == ".npy" else "'copy' as 'leiden_2', 'renamed' as 'leiden_1'"
    assert f"({pairs})" in one_sentence(caught[0].message)
    assert [str(warning.message) for warning in caught] == [str(caught[0].message)]
    read_labels(path, exclude=[4, 5])
    read_labels(path, columns=range(7))
    found = ge.describe(frame, forecasts=False)
    assert [column["same_as"] for column in found.columns] == [None] * 4 + ["leiden_2", "leiden_1", None]
    write_labels(path, frame[["leiden_0", "leiden_2", "copy", "copy"]].to_numpy())
    read_labels(path)  # no warning: with very clear clusters, independent clusterings can be equal


def test_ensembles_that_differ_are_not_strange():
    frame, _, rng = clusterings()
    ge.Ensemble(frame)
    ge.Ensemble(pd.DataFrame(rng.integers(0, 4, (300, 6)), columns=list("abcdef")))  # no two of these clusterings agree
    ge.Ensemble(pd.DataFrame({f"k{k}": rng.integers(0, k, 300) for k in (2, 5, 17, 60)}))
    ge.Ensemble(frame.assign(fine=frame["leiden_0"] * 5 + frame["leiden_1"]))


def test_anndata_is_named_and_answered_at_once(tmp_path):
    anndata = pytest.importorskip("anndata")
    frame, _, _ = clusterings()
    obs = frame.astype("category").set_axis([f"c{i}" for i in range(len(frame))])
    adata = anndata.AnnData(X=np.ones((len(frame), 2), dtype=np.float32), obs=obs)
    for call in (ge.consensus, ge.Ensemble, lambda given: ge.LWEA(3).fit(given)):
        refused(lambda call=call: call(adata), TypeError, "AnnData", "adata.obs[columns]", "'leiden_0'")
    refused(lambda: ge.generate.kmeans_ensemble(adata), TypeError, "AnnData", "adata.X")
    refused(lambda: ge.consensus(obs.assign(depth=0.5)), ValueError, "'depth'", "not whole numbers")


@pytest.mark.parametrize("n", [4, 1])
def test_a_file_joined_to_itself_is_warned_of(table, n):
    labels = np.random.default_rng(0).integers(0, 4, (60, 4))
    twice = pd.DataFrame(np.column_stack([labels, labels[:, :n]])).add_prefix("c").to_csv(index=False)
    with pytest.warns(UserWarning, match=rf"{n} of {4 + n} clusterings repeat another"):
        read_labels(table(twice))


def test_an_index_of_periods_is_read(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [0, 0, 1], "b": [0, 1, 1]}, index=pd.period_range("2026-01", periods=3, freq="M"))
    frame.to_parquet(tmp_path / "l.parquet")
    assert read_labels(tmp_path / "l.parquet").to_array().tolist() == [[0, 0], [0, 1], [1, 1]]


def test_an_index_of_several_levels_is_refused(table):
    index = pd.MultiIndex.from_product([list("ab"), range(20)])
    labels = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (40, 2)), index=index)
    for names in ([0, 1], ["p", "q"]):
        path = table(labels.set_axis(names, axis=1).to_csv())
        refused(lambda path=path: read_labels(path), ValueError, "2 empty fields before the names", "reset_index")
    assert read_labels(table(",,0\n" + "1,2,0\n2,1,1\n" * 6), header=False).n_objects == 13


def test_a_series_without_a_name_is_asked_about(table):
    path = table(pd.Series(np.arange(13) % 3 + 1).to_csv(index=False))
    with pytest.warns(UserWarning, match=r"counts the columns \(0\) and is taken for the names of the columns"):
        assert read_labels(path).n_objects == 13
    assert read_labels(path, header=False).n_objects == 14
