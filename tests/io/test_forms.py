"""Files of other shapes: long form, members of clusters, one-hot columns, text with any ending, words of R for missing.

A file is read as its owner means it, or refused in one sentence that says what to type.
"""

import bz2
import gzip
import json
import lzma

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import one_sentence, refused

import gpuens as ge
from gpuens import batch, cli
from gpuens.io import read_features, read_joined, read_label_file, read_labels
from gpuens.labels.long_form import looks_long


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a text or bytes to a file and returns the path."""

    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def table_of(path, **options):
    """Return the labels of a file as a dict {object: {clustering: label}}, without missing labels."""
    read = read_label_file(path, **options)
    ids = range(read.ensemble.n_objects) if read.ids is None else read.ids
    rows = read.ensemble.to_array()
    return {
        name: {
            clustering: read.ensemble.categories[m][row[m]]
            for m, clustering in enumerate(read.ensemble.names)
            if row[m] >= 0
        }
        for name, row in zip(ids, rows, strict=True)
    }


# --- long form --------------------------------------------------------------------------------------------------------


def answers(n=40, n_workers=9, each=3, seed=0):
    """Return the answers of workers about tasks in random order, a DataFrame in long form."""
    rng = np.random.default_rng(seed)
    of_task = [(f"t{t}", f"w{w}") for t in range(n) for w in rng.permutation(n_workers)[:each]]
    frame = pd.DataFrame(of_task, columns=["task", "worker"])
    return frame.assign(label=rng.choice(["cat", "dog", "owl"], len(frame))).sample(frac=1, random_state=seed)


def votes(frame):
    """Return {task: the label with most votes, "Unknown" in a tie}."""
    modes = {task: labels.mode() for task, labels in frame.groupby("task")["label"]}
    return {task: mode.iloc[0] if len(mode) == 1 else "Unknown" for task, mode in modes.items()}


def literally(frame):
    """Return the labels in a long frame as a dict {object: {clustering: label}}, one row at a time."""
    found = {}
    for task, worker, label in frame.itertuples(index=False):
        labels = found.setdefault(task, {})
        if label is not None and label == label:
            labels[worker] = label
    return found


@pytest.mark.parametrize("name", ["answers.csv", "answers.tsv", "answers.parquet", "answers.feather"])
def test_a_line_for_each_label(tmp_path, name):
    frame, path = answers(), tmp_path / name
    if name.endswith("parquet"):
        frame.to_parquet(path)
    elif name.endswith("feather"):
        frame.reset_index(drop=True).to_feather(path)
    else:
        frame.to_csv(path, sep="\t" if "tsv" in name else ",", index=False)
    read = read_label_file(path, long=True)
    assert list(read.ids) == list(dict.fromkeys(frame["task"]))
    assert read.ids.name == "task"
    assert read.ensemble.names == list(dict.fromkeys(frame["worker"]))
    assert table_of(path, long=True) == literally(frame)
    assert read.form == "a label in each line ('task', 'worker', 'label')"


def test_the_columns_of_a_long_table(file):
    frame = answers()
    shuffled = frame.assign(seconds=range(len(frame)))[["label", "seconds", "worker", "task"]]
    path = file("a.csv", shuffled.to_csv(index=False))
    assert table_of(path, long=True) == literally(frame)
    renamed = shuffled.set_axis(["l", "s", "w", "t"], axis=1)
    path = file("b.csv", renamed.to_csv(index=False))
    refused(lambda: read_labels(path, long=True), ValueError, "'l', 's', 'w', 't'", "--columns")
    assert table_of(path, long=True, columns=["t", "w", "l"]) == literally(frame)
    unnamed = file("c.tsv", frame.to_csv(index=False, header=False, sep="\t"))
    assert table_of(unnamed, long=True) == literally(frame)
    with pytest.raises(ValueError, match="two labels"):  # the user says that the first of four lines holds names
        read_labels(file("e.csv", "t1,a,x\nt1,a,x\nt1,a,y\nt2,b,x\n"), long=True, header=True)
    assert len(table_of(unnamed, long=True, header=True)) == 40  # though one answer fewer
    swapped = file("d.csv", renamed[["w", "t", "l"]].to_csv(index=False))
    assert table_of(swapped, long=True, id_column="t").keys() == literally(frame).keys()


def test_missing_answers_and_answers_given_twice(file):
    text = "item,rater,rating\na,x,1\na,y,NA\nb,x,2\nb,y,2\nb,y,2\nc,y,1\nc,x,\n"
    with pytest.warns(UserWarning, match=r"1 field\(s\) NA in 'rating' are missing labels"):
        assert table_of(file("a.csv", text), long=True) == {"a": {"x": 1}, "b": {"x": 2, "y": 2}, "c": {"y": 1}}
    for line, words in (
        ("b,x,1\n", ["two labels", "2 and 1, of object 'b' in clustering 'x'"]),
        (",x,1\n", ["no object in row 7"]),
    ):
        path = file("b.csv", text + line)
        refused(lambda path=path: read_labels(path, long=True, missing="NA"), ValueError, *words)
    refused(lambda: read_labels(file("d.csv", text), long=True, one_hot=True), ValueError, "--long", "--one-hot")


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_more_annotators_than_objects(file):
    frame = answers(n=5, n_workers=40, each=30)
    assert table_of(file("a.csv", frame.to_csv(index=False)), long=True) == literally(frame)


def test_a_long_table_is_told_from_clusterings(file):
    path = file("a.csv", answers().to_csv(index=False))
    refused(lambda: read_labels(path), ValueError, "'task' and 'worker'", "long=True (--long)", "columns=[…]")
    refused(lambda: read_labels(path, id_column="task"), ValueError, "'task' and 'worker'", "long=True (--long)")
    assert read_labels(path, columns=["task", "worker", "label"]).n_clusterings == 3
    frame = answers().set_axis(["p", "q", "r"], axis=1)
    refused(lambda: read_labels(file("b.csv", frame.to_csv(index=False))), ValueError, "--long")
    refused(lambda: ge.Ensemble(answers()), ValueError, "'task' and 'worker'", "Ensemble.from_long(labels)")
    assert ge.Ensemble(answers(), names=["a", "b", "c"]).n_clusterings == 3


def test_a_repeated_id_is_no_long_table(file):
    """Nearly unique first values have different pairs with any second column."""
    rows = [("c0", 1, 2), *((f"c{i}", i % 3, i % 3) for i in range(200))]
    frame = pd.DataFrame(rows, columns=["cell", "p", "q"])
    assert not looks_long(frame["cell"], frame["p"], list(frame))
    few = answers(n=3, n_workers=3).set_axis(["p", "q", "r"], axis=1)
    assert not looks_long(few["p"], few["q"], list(few))  # nine rows could be anything
    assert looks_long(few["p"], few["q"], ["task", "worker", "r"])


@pytest.mark.parametrize("n", [6, 12, 30, 1000])
@pytest.mark.parametrize("k", [2, 4, 8])
def test_three_clusterings_are_not_long(file, n, k):
    rng = np.random.default_rng(n * k)
    truth = rng.integers(0, k, n)
    labels = np.stack([np.where(rng.random(n) < 0.3, rng.integers(0, k, n), truth) for _ in range(3)], 1)
    labels[:k] = np.arange(k)[:n, None]
    path = file("a.csv", pd.DataFrame(labels, columns=["p", "q", "r"]).to_csv(index=False))
    assert read_labels(path, columns=["p", "q", "r"]).n_clusterings == 3
    ge.Ensemble(pd.DataFrame(labels, columns=["p", "q", "r"]))
    read_labels(path)


def test_a_long_frame_in_python():
    frame = answers()
    ens = ge.Ensemble.from_long(frame)
    wide = frame.pivot(index="task", columns="worker", values="label").loc[ens.index, ens.names]
    np.testing.assert_array_equal(ens.to_array() < 0, wide.isna())
    for m, name in enumerate(ens.names):
        known = wide[name].notna().to_numpy()
        assert ens.categories[m][ens.to_array()[known, m]].tolist() == wide[name][known].tolist()
    vote = ge.Voting(vocabulary="shared", ties="unknown").fit(ens)
    assert dict(zip(ens.index, vote.labels_, strict=True)) == votes(frame)
    renamed = frame.set_axis(["t", "w", "l"], axis=1).assign(x=1)[["x", "l", "w", "t"]]
    again = ge.Ensemble.from_long(renamed, object="t", clustering="w", label="l")
    np.testing.assert_array_equal(again.to_array(), ens.to_array())
    refused(lambda: ge.Ensemble.from_long(renamed), ValueError, "'x', 'l', 'w', 't'")
    refused(lambda: ge.Ensemble.from_long(frame, label="answer"), ValueError, "'answer'", "'label'")
    refused(lambda: ge.Ensemble.from_long([1, 2]), TypeError, "frame")


def test_objects_and_annotators_without_an_answer():
    frame = pd.DataFrame({"task": list("aabbcd"), "worker": list("xyxyxz"), "label": [1, 2, 1, 1, 2, None]})
    refused(lambda: ge.Ensemble.from_long(frame), ValueError, "1 object(s) have no label", "object 3")
    ens = ge.Ensemble.from_long(frame, drop_unlabelled=True)
    assert (list(ens.index), ens.names) == (["a", "b", "c"], ["x", "y"])
    assert ens.to_array().tolist() == [[0, 1], [0, 0], [1, -1]]


@pytest.mark.filterwarnings("ignore:constant clusterings")
def test_long_files_are_joined(file):
    frame = answers()
    first, second = frame.iloc[::2], frame.iloc[1::2]
    paths = [file(f"{name}.csv", part.to_csv(index=False)) for name, part in (("one", first), ("two", second))]
    read = read_joined(paths, long=True)
    assert set(read.ids) == set(frame["task"])
    assert read.ensemble.sizes.sum() == len(frame)
    assert "one:w0" in read.ensemble.names


# --- members of clusters ----------------------------------------------------------------------------------------------


def test_a_cluster_in_each_line(file):
    path = file("out.mcl", "# mcl\ncat\tdog\towl\nant\tbee\nfly\n")
    read = read_label_file(path, members=True)
    assert list(read.ids) == ["cat", "dog", "owl", "ant", "bee", "fly"]
    assert read.ensemble.to_array()[:, 0].tolist() == [0, 0, 0, 1, 1, 2]
    assert read.form == "the members of a cluster in each line"
    untidy = file("c.txt", "cat  dog owl \r\n\r\n ant bee\r\nfly")
    assert list(read_label_file(untidy, members=True).ids) == list(read.ids)
    np.testing.assert_array_equal(read_labels(untidy, members=True).to_array(), read.ensemble.to_array())
    pairs = file("pairs.mcl", "a\tb\nc\td\n")  # all clusters have two members
    assert read_labels(pairs, members=True).to_array()[:, 0].tolist() == [0, 0, 1, 1]
    said = refused(lambda: read_labels(file("b.mcl", "a\tb\nc\ta\td\n"), members=True), ValueError, "'a'")
    assert "clusters 0 and 1" in said


def test_a_representative_and_a_member_in_each_line(file):
    path = file("clu.tsv", "p1\tp1\np1\tp2\np3\tp3\np1\tp4\n")
    read = read_label_file(path, members=True)
    assert list(read.ids) == ["p1", "p2", "p3", "p4"]
    ens = read.ensemble
    assert ens.categories[0][ens.codes[:, 0]].tolist() == ["p1", "p1", "p3", "p1"]
    assert read.form == "a cluster and one of its members in each line"
    refused(
        lambda: read_labels(file("b.tsv", "p1\tp1\np1\tp2\np3\tp2\n"), members=True), ValueError, "'p2'", "p1 and p3"
    )
    refused(lambda: read_labels(file("b.npy", b""), members=True), ValueError, "members=True (--members)", ".npy")


def test_files_of_members_are_joined(file):
    paths = [file("a.mcl", "x\ty\nz\n"), file("b.mcl", "z\ty\nw\n")]
    read = read_joined(paths, members=True)
    assert (list(read.ids), read.ensemble.names) == (["x", "y", "z", "w"], ["a", "b"])
    assert read.ensemble.to_array().tolist() == [[0, -1], [0, 0], [1, 0], [-1, 1]]


# --- one-hot columns --------------------------------------------------------------------------------------------------


def one_hot(labels, names):
    """Return the one-hot columns of clusterings (N, M), -1 for missing, called NAME_1, NAME_2, …."""
    found = {}
    for name, column in zip(names, labels.T, strict=True):
        found |= {f"{name}_{c + 1}": (column == c).astype(int) for c in range(column.max() + 1)}
    return pd.DataFrame(found)


def test_one_hot_columns(file):
    rng = np.random.default_rng(0)
    labels = np.stack([rng.integers(0, k, 50) for k in (3, 2, 4)], 1)
    labels[rng.random(labels.shape) < 0.2] = -1
    labels[:4] = np.arange(4)[:, None] % [3, 2, 4]
    labels[labels.max(axis=1) < 0, 0] = 0
    frame = one_hot(labels, ["rna", "meth", "cn"]).set_index(pd.Index([f"s{i}" for i in range(50)]))
    path = file("moc.csv", frame.to_csv())
    read = read_label_file(path, one_hot=True)
    assert read.ensemble.names == ["rna", "meth", "cn"]
    np.testing.assert_array_equal(read.ensemble.to_array(), labels)
    assert read.ensemble.categories[2].tolist() == ["1", "2", "3", "4"]
    assert list(read.ids[:2]) == ["s0", "s1"]
    assert read.form == "one-hot columns, 9 clusters of 3 clusterings"
    shuffled = frame[rng.permutation(frame.columns)]
    again = read_labels(file("b.csv", shuffled.to_csv()), one_hot=True)
    assert sorted(again.names) == ["cn", "meth", "rna"]
    with pytest.warns(UserWarning, match=r"9 columns of 0 and 1 form 3 group.*\('rna', 'meth', 'cn'\).*--one-hot"):
        assert read_labels(path).n_clusterings == 9


def test_consecutive_columns_with_one_1_in_each_row(tmp_path):
    labels = np.random.default_rng(1).integers(0, 3, (40, 2))
    np.save(tmp_path / "a.npy", one_hot(labels, "pq").to_numpy())
    np.testing.assert_array_equal(read_labels(tmp_path / "a.npy", one_hot=True).to_array(), labels)
    with pytest.warns(UserWarning, match="6 columns of 0 and 1 form 2 group"):
        read_labels(tmp_path / "a.npy")


def test_columns_that_are_not_one_hot(file):
    rng = np.random.default_rng(2)
    binary = pd.DataFrame(rng.integers(0, 2, (40, 6)), columns=[f"run{m}" for m in range(6)])
    path = file("a.csv", binary.to_csv(index=False))
    assert read_labels(path).n_clusterings == 6  # no warning
    refused(lambda: read_labels(path, one_hot=True), ValueError, "--one-hot", "one 1 in each row", "run1_1")
    with_ids = binary.assign(cell=[f"c{i}" for i in range(40)])
    path = file("b.csv", with_ids.to_csv(index=False))
    refused(lambda: read_labels(path, one_hot=True), ValueError, "'cell' has other values than 0 and 1", "--id-column")


# --- text with any ending ---------------------------------------------------------------------------------------------

LABELS = np.random.default_rng(3).integers(0, 3, (30, 4))
FRAME = pd.DataFrame(LABELS, columns=list("abcd"))


def packed_zst(text):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return sink.getvalue().to_pybytes()


PACKED = {"txt.gz": gzip.compress, "csv.bz2": bz2.compress, "csv.xz": lzma.compress, "csv.zst": packed_zst}


@pytest.mark.parametrize(
    "name", ["a.txt", "a.dat", "a.clu", "a.labels", "a", "a.csv.bz2", "a.csv.xz", "a.csv.zst", "a.txt.gz"]
)
@pytest.mark.parametrize("sep", [",", ";", "\t", "|", " "])
def test_text_is_told_by_its_content(file, name, sep):
    pack = PACKED.get(name.partition(".")[2], bytes)
    path = file(name, pack(FRAME.to_csv(index=False, sep=sep).encode()))
    ens = read_labels(path)
    assert ens.names == list("abcd")
    np.testing.assert_array_equal(ens.to_array(), LABELS)
    np.testing.assert_array_equal(read_features(path), LABELS)


def test_a_label_in_each_line_of_several_files(file):
    paths = [file(f"wing.labels{m}.gz", gzip.compress("\n".join(map(str, LABELS[:, m])).encode())) for m in range(3)]
    read = read_joined(paths)
    assert read.ensemble.names == ["wing.labels0", "wing.labels1", "wing.labels2"]
    np.testing.assert_array_equal(read.ensemble.to_array(), LABELS[:, :3])


@pytest.mark.parametrize(
    ("name", "content", "mentioned"),
    [
        ("a.xlsx", b"PK\x03\x04" + bytes(9), ["zip archive", "csv"]),
        ("a.rds", gzip.compress(b"X\n\0\0\0\3", mtime=0), ["file of R", "write.csv"]),
        ("a.nii.gz", gzip.compress(b"\x5c\1\0\0", mtime=0), ["neither text nor", ".npy", ".parquet"]),
        ("a.json", b'{"a": [1, 2]}', ["JSON"]),
        ("a.mtx", b"%%MatrixMarket matrix coordinate\n1 1 1\n", ["Matrix Market"]),
        ("a.pkl", b"\x80\x04\x95\0\0", ["neither text nor"]),
        ("a.mat", b"MATLAB 5.0 MAT-file", ["MATLAB", "scipy.io.loadmat"]),
        ("a.h5", b"\x89HDF\r\n", ["HDF5"]),
        ("a.gz", b"\x1f\x8b\x08", ["a.gz", "cannot be read"]),
        ("a.txt", b"", ["is empty"]),
    ],
)
def test_other_files_are_refused_by_what_they_are(file, name, content, mentioned):
    refused(lambda: read_labels(file(name, content)), ValueError, *mentioned)


def test_arrays_are_told_by_their_first_bytes(tmp_path):
    np.save(tmp_path / "labels.npy", LABELS)
    (tmp_path / "labels.npy").rename(tmp_path / "labels")
    np.testing.assert_array_equal(read_labels(tmp_path / "labels").to_array(), LABELS)


def test_feather(tmp_path):
    frame = FRAME.assign(e=pd.array([None, *LABELS[1:, 0]], dtype="Int64"), f=pd.Categorical(["x", None, "y"] * 10))
    frame.to_feather(tmp_path / "a.feather")
    ens = read_labels(tmp_path / "a.feather", columns=list("abcdef"))
    np.testing.assert_array_equal(ens.to_array()[:, :4], LABELS)
    assert ens.to_array()[:2, 4:].tolist() == [[-1, 0], [LABELS[1, 0], -1]]
    np.testing.assert_array_equal(read_features(tmp_path / "a.feather", columns=list("abcd")), LABELS)


# --- lines before the table, separators, and what programs add --------------------------------------------------------

ROWS = [(f"s{i}", *row) for i, row in enumerate(LABELS.tolist())]


def lines(sep, rows=ROWS, end="\n"):
    return "".join(sep.join(map(str, row)) + end for row in rows)


@pytest.mark.parametrize("sep", [",", "\t", " "])
@pytest.mark.parametrize("before", ["# made by tool 1.2, on Monday\n", "#v1\n# x\n\n", ""])
@pytest.mark.parametrize("named", ["in a line", "in a comment", "not"])
def test_comment_lines(file, sep, before, named):
    names = ["id", "a", "b", "c", "d"]
    head = {"in a line": sep.join(names) + "\n", "in a comment": "#" + sep.join(names) + "\n", "not": ""}[named]
    path = file("a.txt", before + head + lines(sep))
    columns = "abcd" if named != "not" else [1, 2, 3, 4]
    read = read_label_file(path, id_column="id" if named != "not" else 0, header=None if named != "not" else False)
    assert read.ensemble.names == list(columns)
    np.testing.assert_array_equal(read.ensemble.to_array(), LABELS)
    assert list(read.ids[:2]) == ["s0", "s1"]


def test_a_comment_is_not_a_header_by_accident(file):
    text = "# seed 1,k 3,run 2,rate .1,x\nid,a,b,c,d\n" + lines(",")
    assert read_labels(file("a.csv", text), id_column="id").names == list("abcd")
    colours = file("b.txt", "#ff0000\n#00ff00\n#ff0000\n")  # labels of WGCNA and others
    assert read_labels(colours, header=False).to_array()[:, 0].tolist() == [1, 0, 1]
    said = refused(lambda: read_labels(file("c.csv", "# x\n# y\na,b\n1,2\n1\n")), ValueError, "1 field(s) in line 5")
    assert "','" in said


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_excel_writes(file, end):
    head = [("id", "a", "b", "c", "d")]
    plain = lines(";", head + ROWS, end)
    for text in (
        f"sep=;{end}" + plain,
        lines(";", head + ROWS, ";" + end),
        lines(";", head, end) + lines(";", ROWS, ";" + end),
    ):
        read = read_label_file(file("a.csv", text), id_column="id")
        assert read.ensemble.names == list("abcd")
        np.testing.assert_array_equal(read.ensemble.to_array(), LABELS)
        assert list(read.ids) == [row[0] for row in ROWS]
    with pytest.warns(UserWarning, match=r"2 row\(s\) at the end have no field, and are left out") as caught:
        assert read_labels(file("b.csv", plain + f";;;;{end}" * 2), id_column="id").n_objects == 30
    one_sentence(caught[0].message)


def test_a_last_column_that_is_seldom_filled_is_no_trailing_separator(file):
    """A separator at the end of each line means nothing; if a single field follows one, all are fields."""
    rows = ["1,2,"] * 30_000 + ["2,1,7", "1,2,8"]
    ens = read_labels(file("a.csv", "a,b,\n" + "\n".join(rows) + "\n"), columns=[0, 1, 2])
    assert ens.n_clusterings == 3
    assert ens.sizes.tolist() == [30_001, 1, 1, 30_001, 1, 1]


def test_aligned_columns_between_blanks(file):
    text = "  a   b    c\n" + "".join(f" s{i}   {x}  {y}  {z} \n" for i, (x, y, z, _) in enumerate(LABELS))
    ens = read_label_file(file("a.txt", text))
    np.testing.assert_array_equal(ens.ensemble.to_array(), LABELS[:, :3])
    assert list(ens.ids[:2]) == ["s0", "s1"]
    np.testing.assert_array_equal(read_labels(file("a.txt", text), sep=" ").to_array(), LABELS[:, :3])
    refused(lambda: read_labels(file("c.txt", "a b c\n1 2 3\n1  3\n"), sep=" "), ValueError, "2 field(s) in line 3")
    quoted = 'p q\n"a  b" 1\n"c d" 2\n"e" 1\n'
    assert list(read_label_file(file("b.txt", quoted), id_column=0).ids) == ["a  b", "c d", "e"]


# --- NA ---------------------------------------------------------------------------------------------------------------


def test_na_of_r_is_missing_among_numbers_and_texts(file):
    path = file("a.csv", '"","a","b"\n"s1","T1",1\n"s2",NA,2\n"s3","T2",NA\n"s4","T1",NA\n')
    with pytest.warns(UserWarning, match=r"3 field\(s\) NA in 'a', 'b' are missing labels") as caught:
        assert read_labels(path).to_array().tolist() == [[0, 0], [-1, 1], [1, -1], [0, -1]]
    assert "no_missing=['NA'] (--no-missing 'NA')" in one_sentence(caught[0].message)
    assert read_labels(path, missing="NA").to_array().tolist() == [[0, 0], [-1, 1], [1, -1], [0, -1]]
    kept = read_labels(path, no_missing=["NA"])
    assert [values.tolist() for values in kept.categories] == [["NA", "T1", "T2"], ["1", "2", "NA"]]
    refused(lambda: read_labels(path, missing="NA", no_missing="NA"), ValueError, "no_missing both have 'NA'")


@pytest.mark.parametrize("word", ["NA", "<NA>", "N/A", "#N/A", "NaN", "nan"])
def test_words_that_programs_write_for_missing(file, word):
    path = file("a.csv", f"p,q\nx,1\n{word},2\ny,1\nx,2\n")
    with pytest.warns(UserWarning, match=r"1 field\(s\) .* are missing"):
        assert read_labels(path).to_array()[:, 0].tolist() == [0, -1, 1, 0]


def test_only_text_has_words_for_missing(tmp_path):
    np.save(tmp_path / "a.npy", LABELS)
    refused(lambda: read_labels(tmp_path / "a.npy", no_missing="NA"), ValueError, "no_missing='NA' applies to text")


# --- maps -------------------------------------------------------------------------------------------------------------


def test_a_stack_of_maps(tmp_path):
    maps = np.random.default_rng(4).integers(0, 3, (5, 6, 8))
    np.save(tmp_path / "stack.npy", maps)
    for call in (lambda: ge.consensus(maps, 3), lambda: read_labels(tmp_path / "stack.npy")):
        refused(call, ValueError, "(5, 6, 8)", "a stack of 5 maps", "labels.reshape(5, -1).T")
    last = np.moveaxis(maps, 0, 2)
    refused(lambda: ge.Ensemble(last), ValueError, "a stack of 5 maps", "labels.reshape(-1, 5)")
    np.testing.assert_array_equal(maps.reshape(5, -1).T, last.reshape(-1, 5))


# --- memberships ------------------------------------------------------------------------------------------------------


def two_stories(n=90):
    """Return five memberships (n, 3) of one story and three of another, clusters in any order, and both stories."""
    rng = np.random.default_rng(5)
    stories = [np.repeat([0, 1, 2], n // 3), np.repeat([0, 0, 0, 1, 2, 2], n // 6)]
    runs = []
    for story in [stories[0]] * 5 + [stories[1]] * 3:
        shares = 0.3 * rng.dirichlet(np.ones(3), n) + 0.7 * np.eye(3)[story]
        runs.append(shares[:, rng.permutation(3)])
    return runs, stories


def text_of(shares, names=None, clumpp=False):
    text = ""
    for i, row in enumerate(shares.tolist()):
        text += f"  {i + 1}   {i + 1}   (0)   1 : " if clumpp else f"{names[i]} " if names else ""
        text += " ".join(f"{share:.6f}" for share in row) + "\n"
    return text


def test_memberships_are_read(file):
    runs, _ = two_stories()
    for name, text in (("a.3.Q", text_of(runs[0])), ("a.meanQ", text_of(runs[0]).replace(" ", "  "))):
        (found,) = ge.io.read_memberships(file(name, text))
        np.testing.assert_allclose(found, runs[0], atol=1e-6)
    names = [f"ind{i}" for i in range(90)]
    path = file("named.txt", text_of(runs[0], names))
    np.testing.assert_allclose(ge.io.read_memberships(path)[0], runs[0], atol=1e-6)
    found = ge.io.read_memberships(file("a.indfile", "\n".join(text_of(run, clumpp=True) for run in runs[:3])))
    np.testing.assert_allclose(found, runs[:3], atol=1e-6)
    rounded = file("b.Q", "0.33 0.33 0.33\n0.50 0.25 0.25\n")
    np.testing.assert_allclose(ge.io.read_memberships(rounded)[0], [[1 / 3] * 3, [0.5, 0.25, 0.25]])
    refused(lambda: ge.io.read_memberships(file("c.Q", "0.5 0.5\n0.5 0.6\n")), ValueError, "row 1", "0.5, 0.6")
    refused(lambda: ge.io.read_memberships(file("d.csv", "a,b\nx,u\ny,u\n")), ValueError, "other columns than numbers")


def test_memberships_are_no_labels(file):
    path = file("a.3.Q", text_of(two_stories()[0][0]))
    refused(lambda: read_labels(path), ValueError, "memberships and no labels", "gpuens modes", "read_memberships")
    assert not ge.io.holds_memberships(file("b.txt", lines(" ")))
    assert not ge.io.holds_memberships(file("c.csv", "a,b\n1,0\n0,1\n"))  # one-hot columns
    assert ge.io.holds_memberships(file("d.csv", "p1,p2\n.5,.5\n1,0\n"))


def test_modes_of_memberships():
    runs, stories = two_stories()
    found = ge.modes(runs)
    assert found.of_clustering.tolist() == [0] * 5 + [1] * 3
    for mode, story, members in zip(found.modes, stories, (runs[:5], runs[5:]), strict=True):
        assert ge.metrics.ari(mode.consensus, story) == 1
        np.testing.assert_array_equal(mode.consensus, mode.membership.argmax(axis=1))
        # literally: the columns of each run in the order of the story's clusters, and their mean
        ordered = [run[:, [run[story == c].mean(axis=0).argmax() for c in range(3)]] for run in members]
        mean = np.mean(ordered, axis=0)
        of_story = [int(np.bincount(story[mode.consensus == c]).argmax()) for c in range(3)]
        np.testing.assert_allclose(mode.membership, mean[:, of_story])
        sizes = np.bincount(mode.consensus).tolist()
        assert sizes == sorted(sizes, reverse=True)
    names = [f"o{i}" for i in range(90)]
    frames = [pd.DataFrame(run, index=names).sample(frac=1, random_state=m) for m, run in enumerate(runs)]
    frames[0] = frames[0].loc[names]
    again = ge.modes(frames)
    for mode, same in zip(found.modes, again.modes, strict=True):
        np.testing.assert_allclose(same.membership, mode.membership)
    without = [np.where(np.arange(90)[:, None] == 7, np.nan, run) for run in runs[:5]]
    first, second = ge.modes([*without, *runs[5:]]).modes
    assert np.flatnonzero(first.consensus == -1).tolist() == [7]
    assert second.consensus.min() == 0
    mixed = ge.modes([*runs[:5], stories[0].tolist()])
    assert len(mixed.modes) == 1
    assert ge.modes([stories[0], stories[0]]).modes[0].membership is None


# --- the command line and batches -------------------------------------------------------------------------------------


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run a command in this process, in the temporary folder; return its exit code and texts on stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(line):
        code = cli.main(line.split())
        out, err = capsys.readouterr()
        return code, out, err

    return run


def labels_in(path):
    """Return a written consensus as a dict {object: label}."""
    return dict(pd.read_csv(path, dtype=str).iloc[:, :2].itertuples(index=False))


def test_answers_on_the_command_line(file, call):
    frame = answers()
    file("a.csv", frame.to_csv(index=False))
    code, _, err = call("run a.csv --shared-names -o out.csv")
    assert code == 3
    assert "--long" in one_sentence(err.strip())
    code, out, _ = call("run a.csv --long --shared-names -o out.csv")
    assert code == 0
    assert "40 objects, 9 clusterings" in out
    assert "read as: a label in each line ('task', 'worker', 'label')" in out
    assert labels_in("out.csv") == votes(frame)


def test_na_has_a_vote_if_it_is_a_name(file, call):
    file("a.csv", "cell,p,q,r\n" + "".join(f"c{i},NA,NA,{'xy'[i % 2]}\n" for i in range(12)))
    code, _, err = call("run a.csv --id-column cell --shared-names -o out.csv")
    assert code == 0
    assert "24 field(s) NA in 'p', 'q' are missing labels" in err
    assert set(labels_in("out.csv").values()) == {"x", "y"}
    assert call("run a.csv --id-column cell --shared-names --no-missing NA -o out.csv")[0] == 0
    assert pd.read_csv("out.csv", keep_default_na=False)["label"].tolist() == ["NA"] * 12


def test_the_line_about_na_names_an_option_of_the_command(file, call):
    file("a.csv", "p\n" + "x\nNA\ny\n" * 4)
    file("b.csv", "q\n" + "1\n1\n2\n" * 4)
    code, out, err = call("score a.csv b.csv --json")
    assert (code, json.loads(out)["ari"]) == (0, 1)
    assert "--no-missing 'NA'" in err
    code, out, err = call("score a.csv b.csv --json --no-missing NA")
    assert (code, err) == (0, "")
    assert json.loads(out)["ari"] < 1


def test_members_and_one_hot_columns_on_the_command_line(file, call):
    file("a.mcl", "x\ty\nz\tw\n")
    file("b.mcl", "w\tz\ny\tx\n")
    code, out, _ = call("run a.mcl b.mcl --members -k 2 --method eac -o out.csv")
    assert code == 0
    assert "read as: the members of a cluster in each line" in out
    found = labels_in("out.csv")
    assert found["x"] == found["y"] != found["z"] == found["w"]
    labels = np.random.default_rng(6).integers(0, 3, (40, 3))
    file("moc.csv", one_hot(labels, ["p", "q", "r"]).to_csv(index=False))
    code, out, _ = call("describe moc.csv --one-hot")
    assert code == 0
    assert call("run moc.csv --one-hot -k 3 --method eac -o out.csv")[0] == 0
    np.testing.assert_array_equal(pd.read_csv("out.csv")["label"], ge.EAC(3).fit(labels).labels_)


def test_modes_of_q_files(file, call):
    runs, stories = two_stories()
    paths = " ".join(file(f"run{m}.Q", text_of(run, [f"ind{i}" for i in range(90)])).name for m, run in enumerate(runs))
    code, out, _ = call(f"modes {paths} -o modes.csv")
    assert code == 0
    assert out.startswith("Your 8 clusterings are two stories: 5 and 3.")
    found = pd.read_csv("modes.csv", index_col=0)
    assert found.index[:2].tolist() == ["ind0", "ind1"]
    assert ge.metrics.ari(found["mode_1"], stories[1]) == 1
    np.testing.assert_allclose(found[[f"mode_0_share_{c}" for c in range(3)]].sum(axis=1), 1, atol=1e-5)
    code, _, err = call(f"modes {paths} -o modes.npy")
    assert code == 3
    assert "'modes.npy' cannot hold" in err
    assert call("run run0.Q -k 3")[0] == 3


def test_forms_in_a_batch(file, tmp_path):
    pytest.importorskip("jsonschema")
    frame = answers()
    path = file("a.csv", frame.to_csv(index=False))
    job = {"input": str(path), "method": "eac", "n_clusters": 3, "id": "a", "long": True, "format": "csv"}
    assert "1 to do" in batch.forecast([job], str(tmp_path / "results"))
    assert batch.run([job], str(tmp_path / "results")).done == 1
    found = labels_in(tmp_path / "results" / "a.labels.csv")
    assert list(found) == list(dict.fromkeys(frame["task"]))
