"""The words of installation commands: a wheel file until a package index has gpuens, and its name from then on.

Pages write WHEEL for the path of the file. Lines between `BEGIN` and `END` are about the file alone; lines in a comment
"with an index" stand in their place from then on.
"""

import re

BEGIN, END = "<!-- without an index -->\n", "<!-- end -->\n"
ABOUT_THE_FILE = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
ABOUT_THE_INDEX = re.compile("<!-- with an index\n(.*?)-->\n", re.DOTALL)


def for_index(text: str) -> str:
    """Return a page or README.md for users whose index has gpuens."""
    return ABOUT_THE_INDEX.sub(r"\1", ABOUT_THE_FILE.sub("", text)).replace("WHEEL", "gpuens")
