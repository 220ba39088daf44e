"""The line below the title of a report page."""

from datetime import datetime

from gpuens import __version__


def byline(subject: str) -> str:
    """Return the subject of the page, the date and the version, as one line."""
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return f"{subject} · {date} · gpuens {__version__}"
