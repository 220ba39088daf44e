"""What the CCE paper printed: Tables VI to X of "Coupled Clustering Ensemble by Exploring Data Interdependence".

Wang, She, Cao, Chi, Zhou, ACM Transactions on Knowledge Discovery from Data 12 (2018), over 50 runs, L = 10 base
clusterings, as many clusters as there are classes. The methods of the clustering-based and the object-based group are
only in figures (6 and 7), and their names stand here for nothing but what the text says of them.
"""

DATA_SETS = ("Sy1", "Sy2", "Iris", "Wine", "Seg", "Glass", "Ecoli", "Ionos", "Blood", "Vowel", "Yeast")
SCORES = ("AC", "NMI", "CSI")

Table = dict[str, dict[str, dict[str, float]]]  # score: method: data set


def _table(text: str, columns: tuple[str, ...]) -> Table:
    """Read "score method value value …" lines."""
    table: Table = {}
    for line in text.strip().split("\n"):
        score, method, *values = line.split()
        table.setdefault(score, {})[method] = dict(zip(columns, map(float, values), strict=True))
    return table


# of the base clusterings of each data set; the NMI of Sy2 is printed three times alike
TABLE_VII = _table(
    """
    AC  max .955 .503 .927 .708 .586 .517 .687 .712 .739 .373 .384
    AC  avg .950 .460 .827 .689 .529 .479 .512 .704 .709 .354 .332
    AC  min .945 .385 .513 .556 .433 .449 .470 .650 .707 .339 .319
    NMI max .745 .406 .750 .441 .548 .338 .539 .131 .017 .435 .250
    NMI avg .720 .406 .656 .424 .496 .307 .437 .107 .016 .415 .220
    NMI min .693 .406 .427 .388 .410 .276 .398 .014 .013 .388 .218
    CSI avg .714 .698 .791 .659 .820 .602 .530 .670 .780 .802 .817
    """,
    DATA_SETS,
)

TABLE_VIII = _table(
    """
    AC  MCLA   .945 .501 .875 .702 .560 .472 .528 .711 .680 .365 .341
    AC  HBGF   .949 .503 .877 .690 .532 .445 .468 .684 .528 .379 .301
    AC  LB-P   .952 .504 .878 .703 .582 .459 .530 .711 .719 .330 .328
    AC  LB-S   .951 .486 .844 .690 .560 .483 .539 .711 .713 .364 .332
    AC  CrC-Ia .954 .513 .893 .731 .579 .482 .539 .721 .713 .394 .379
    AC  CrC-C  .969 .518 .902 .764 .579 .511 .587 .742 .723 .430 .378
    NMI MCLA   .725 .406 .744 .429 .526 .318 .510 .129 .015 .411 .223
    NMI HBGF   .710 .389 .706 .355 .486 .316 .444 .109 .007 .414 .206
    NMI LB-P   .723 .406 .745 .429 .548 .318 .511 .130 .016 .420 .221
    NMI LB-S   .724 .363 .687 .412 .531 .335 .502 .130 .015 .394 .210
    NMI CrC-Ia .734 .436 .752 .556 .543 .323 .511 .164 .018 .445 .226
    NMI CrC-C  .764 .456 .753 .580 .540 .337 .539 .171 .019 .477 .228
    CSI MCLA   .950 .710 .876 .828 .775 .554 .640 .937 .897 .783 .774
    CSI HBGF   .953 .703 .761 .712 .716 .594 .528 .839 .642 .736 .742
    CSI LB-P   .954 .713 .860 .829 .840 .601 .673 .943 .893 .774 .786
    CSI LB-S   .943 .662 .787 .846 .767 .601 .594 .926 .892 .757 .727
    CSI CrC-Ia .967 .736 .892 .868 .878 .621 .649 .955 .897 .808 .817
    CSI CrC-C  .963 .752 .910 .880 .880 .639 .679 .957 .940 .872 .822
    """,
    DATA_SETS,
)

# documents: parts of 20 newsgroups (5 classes, all 20), of Reuters-21578 (8) and of WebKB (4), as bags of words
DOCUMENTS = ("D1", "D2", "D3", "D4")

TABLE_IX = _table(
    """
    AC  BOW   .293 .125 .740 .431
    AC  KCC   .402 .289 .786 .586
    AC  CgC   .450 .362 .806 .642
    AC  OC-H  .463 .350 .836 .681
    AC  CrC-C .458 .362 .838 .679
    NMI BOW   .139 .207 .421 .094
    NMI KCC   .365 .356 .615 .152
    NMI CgC   .362 .411 .639 .195
    NMI OC-H  .359 .405 .662 .205
    NMI CrC-C .375 .409 .659 .201
    CSI BOW   .521 .436 .632 .325
    CSI KCC   .786 .800 .855 .779
    CSI CgC   .821 .803 .853 .792
    CSI OC-H  .833 .800 .820 .787
    CSI CrC-C .845 .812 .839 .826
    """,
    DOCUMENTS,
)

# seconds of the consensus alone, with 1,864, 1,989, 2,091 and 4,087 documents
TABLE_X = {
    "CgC": (8.65, 9.31, 13.63, 31.12),
    "OC-H": (17.54, 19.69, 30.12, 60.59),
    "CrC-C": (16.35, 19.95, 31.20, 60.41),
}
