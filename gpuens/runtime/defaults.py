"""Default choices; bench/results/quality.md has the evidence for them."""

METHOD = "lwgp"
KIND = "mixed"  # kind of base clusterings that `gpuens.cluster` generates
