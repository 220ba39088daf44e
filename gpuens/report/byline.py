"""The line below the title of a report page."""

from collections.abc import Mapping
from typing import Any

from gpuens import __version__
from gpuens.runtime.record import date_and_time


def byline(subject: str, facts: Mapping[str, Any] | None = None) -> str:
    """Return the subject of a page, the date and the version as one line.

    Date and version are those of a record, which may lack them; without a record, those of now.
    """
    facts = {"date": date_and_time(), "gpuens": __version__} if facts is None else facts
    version = f"gpuens {facts['gpuens']}" if "gpuens" in facts else ""
    return " · ".join(filter(None, (subject, facts.get("date"), version)))
