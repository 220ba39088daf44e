"""Default choices; bench/results/quality.md has the evidence for them."""

METHOD = "lwgp"
METHOD_WITH_LINKS = "lwea"  # average linkage keeps must-links and cannot-links
KIND = "mixed"  # kind of base clusterings that `gpuens.cluster` generates
# objects that a join of several sources keeps: those of all sources together, or those in every source
HOW_TO_JOIN = ("outer", "inner")
FORMS = ("long", "members", "one_hot")  # options of reading for files whose columns are not the clusterings
LEVEL = 0.05  # level of significance
SCALES = ("auto", "standard", "robust", "none")  # scalings of features
