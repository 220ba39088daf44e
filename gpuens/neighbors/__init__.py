"""Consensus with neighbours: labels together with a graph of the objects.

labels, graph ─▶ walk ─▶ shares of the labels around ─▶ regions ─▶ method ─▶ refinement by a Potts prior
"""
