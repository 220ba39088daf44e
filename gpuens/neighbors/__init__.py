"""Consensus of objects that have neighbours: labels and a graph are used together."""
