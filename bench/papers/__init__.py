"""The papers' experiments, a folder each: `python bench/papers PAPER`."""

import importlib
import tomllib
from pathlib import Path

import common
from report import Page

FOLDER = Path(__file__).parent


def printed_by(paper: str) -> common.Record:
    """Return the tables that a paper prints."""
    return tomllib.loads((FOLDER / paper / "printed.toml").read_text())


def page_of(paper: str) -> Page:
    findings = importlib.import_module(f"papers.{paper}.findings")
    return Page(FOLDER / paper / "page.toml", findings, findings.PRINTED)
