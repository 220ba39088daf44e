"""Sphinx settings of the site (`make docs`). Made files go into docs/generated and docs/gallery, which git ignores."""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["GPUENS_PROGRESS"] = "0"

import cards  # noqa: E402
import installation  # noqa: E402
import pages  # noqa: E402
import public_names  # noqa: E402

import gpuens  # noqa: E402

# The address of the repository, such as "https://github.com/OWNER/gpuens", or "" (as now) without one. The header and
# the names of files of the checkout link to this address.
REPOSITORY = os.environ.get("GPUENS_REPOSITORY", "")

# Whether a package index has gpuens. Until then, commands of all pages install a wheel file (installation.py).
ON_INDEX = os.environ.get("GPUENS_ON_INDEX", "") == "1"

project = "gpuens"
author = "the gpuens developers"
project_copyright = "the gpuens developers"
release = gpuens.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "mathml",
]
exclude_patterns = [
    "_build",
    "generated/devices.md",
    "generated/table.md",
    "generated/papers.md",
    "examples",
    "gallery/*.ipynb",
    "gallery/*.py",
    "gallery/*.md5",
]
root_doc = "index"
default_role = "py:obj"  # a name in single backquotes, such as `consensus`, becomes a link; other text becomes code
nitpicky = False
autosummary_generate = True
templates_path = ["templates"]  # template of classes, which documents __call__ of base classes
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 3600,  # seconds; shorter times are of no interest on a page
    "download_all_examples": False,
    "capture_repr": (),
    "show_signature": False,
    "image_scrapers": ("pages.scraped",),
    "thumbnail_size": pages.THUMBNAIL,
}

html_theme = "pydata_sphinx_theme"
html_title = f"gpuens {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {page: [] for page in [*(path.stem for path in HERE.glob("*.md")), f"{pages.FOLDER}/*"]}
html_theme_options = {
    "collapse_navigation": False,
    "show_nav_level": 1,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 4,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
    "logo": {"text": "gpuens", "image_light": "static/logo.svg", "image_dark": "static/logo.svg"},
}
html_favicon = "static/logo.svg"
if REPOSITORY:
    html_theme_options["icon_links"] = [{"name": "Repository", "url": REPOSITORY, "icon": "fa-solid fa-code-branch"}]


def setup(app):
    cards.write(HERE / "generated")
    pages.copy_results()
    app.connect("builder-inited", pages.thumbnails, priority=900)  # runs after sphinx-gallery
    app.connect("source-read", commands_of_installation)
    app.connect("source-read", pages_of_the_site, priority=400)  # runs before links_to_the_checkout
    app.connect("source-read", links_to_the_checkout)
    app.connect("html-page-context", pages.name_cells)
    app.connect("html-page-context", pages.let_figures_scroll)
    app.connect("autodoc-process-docstring", sizes_are_no_markup, priority=900)  # runs after numpydoc
    app.connect("autodoc-process-docstring", public_names.with_version, priority=950)


def pages_of_the_site(app, name, source):
    """Turn links to results of bench/ into links to pages of the site, group the examples, complete the glossary."""
    change = {"gallery/index": pages.grouped, "glossary": pages.with_words_of_reports}.get(name, pages.linked)
    source[0] = change(source[0])


def commands_of_installation(app, name, source):
    """Let commands install gpuens from an index, if one has it."""
    if ON_INDEX:
        source[0] = installation.for_index(source[0])


def links_to_the_checkout(app, name, source):
    """Turn links to files of the checkout into links to the repository, or, without its address, into names."""
    source[0] = cards.without_links_out(source[0], REPOSITORY)


def sizes_are_no_markup(app, what, name, thing, options, lines):
    """Escape the bars of sizes, |c ∩ d|, outside literals and examples; otherwise they would be substitutions."""
    example = False
    for i, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"(``.*?``)", line)
            lines[i] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)
