"""What is taken where nothing is said; bench/results/quality.md has the evidence."""

METHOD = "lwgp"
KIND = "mixed"  # base clusterings that `gpuens.cluster` makes
