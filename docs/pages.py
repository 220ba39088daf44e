"""What the site makes of its pages: results of bench/ are pages, examples have groups, tables are cards on a phone."""

import pickle
import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parent / "bench" / "results"
FOLDER = "generated/results"
WIDE = b"---\nhtml_theme.sidebar_secondary.remove: true\n---\n"  # without a list of parts beside wide tables
PANELS = HERE / "generated" / "panels"  # the pictures that thumbnails are made of
GROUPS = tomllib.loads((HERE / "groups.toml").read_text())
PANEL_INCHES = (3.4, 2.4)  # of a thumbnail, so that its text can be read in
LONGEST_LABEL, MOST_TEXTS = 32, 20  # letters at an axis and texts in a panel, of which more have no room there
THUMBNAIL = (480, 340)  # pixels


# --- results ----------------------------------------------------------------------------------------------------------


def copy_results():
    """Copy the results and their pictures into the site, so that each is written once."""
    folder = HERE / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*RESULTS.glob("*.md"), *RESULTS.glob("*.png")]:
        copy, content = folder / path.name, path.read_bytes()
        if path.suffix == ".md":
            content = WIDE + content
        if not copy.exists() or copy.read_bytes() != content:  # what has not changed is not read anew
            copy.write_bytes(content)


def linked(text):
    """Return a page whose links to results of a checkout lead to their copies."""
    return re.sub(r"\]\((?:\.\./)*bench/results/([\w-]+\.md)(#[^)]*)?\)", rf"](/{FOLDER}/\1\2)", text)


# --- the gallery ------------------------------------------------------------------------------------------------------


def grouped(text):
    """Return the index of the gallery with the thumbnails in the groups of groups.toml, each under its title."""
    begin, *thumbnails = re.split(r'(?=\.\. raw:: html\n\n    <div class="sphx-glr-thumbcontainer")', text)
    *thumbnails, last = [*thumbnails[:-1], *thumbnails[-1].split(".. thumbnail-parent-div-close")]
    toctree = last[last.index(".. toctree::") :]
    by_name = {re.search(r":doc:`/gallery/(\w+)`", thumbnail)[1]: thumbnail for thumbnail in thumbnails}
    groups = {title: group for title, group in GROUPS.items() if title != "panels"}
    chosen = {name for group in groups.values() for name in group["examples"]}
    if absent := chosen - by_name.keys():
        raise ValueError(f"docs/groups.toml names {sorted(absent)}, which docs/examples does not have.")
    parts = [begin[: begin.index(".. raw:: html")]]
    for place, (title, group) in enumerate(groups.items()):
        others = [name for name in by_name if name not in chosen] if place == 0 else []  # the first has all others
        shown = "".join(by_name[name] for name in group["examples"] + others)
        opened = '.. raw:: html\n\n    <div class="sphx-glr-thumbnails">\n\n'
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{group['about']}\n\n{opened}{shown}.. raw:: html\n\n    </div>\n\n"
        )
    return "".join(parts) + toctree


def scraped(block, block_vars, gallery_conf, **more):
    """Save the figures of a block as sphinx-gallery does, and a panel of the first for the thumbnail of the page."""
    import matplotlib.pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    name = Path(block_vars["src_file"]).stem
    path = PANELS / f"{name}.png"
    if plt.get_fignums() and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_panel(plt.figure(plt.get_fignums()[0]), GROUPS["panels"].get(name, -1), path)
    return matplotlib_scraper(block, block_vars, gallery_conf, **more)


def save_panel(figure, place, path):
    """Write a panel of a figure alone, so small that its text is large in the picture."""
    import matplotlib.pyplot as plt
    from matplotlib.gridspec import GridSpec

    alone = pickle.loads(pickle.dumps(figure))
    panels = [ax for ax in alone.axes if not hasattr(ax, "_colorbar")]
    shown = panels[place]
    for other in [ax for ax in alone.axes if ax is not shown]:
        other.remove()
    shown.set_title("")  # that of the page is below
    for axis in (shown.xaxis, shown.yaxis):
        axis.set_label_text(axis.get_label_text() if len(axis.get_label_text()) <= LONGEST_LABEL else "")
    for written in [shown.get_legend(), *(shown.texts if len(shown.texts) > MOST_TEXTS else [])]:
        if written is not None:
            written.remove()
    alone.set_layout_engine("constrained")
    alone.set_size_inches(PANEL_INCHES)
    shown.set_subplotspec(GridSpec(1, 1, figure=alone)[0, 0])
    alone.savefig(path, dpi=THUMBNAIL[0] / PANEL_INCHES[0])
    plt.close(alone)


def thumbnails(app):
    """Put the panels in the place of sphinx-gallery's thumbnails, which show whole figures."""
    from sphinx_gallery.utils import scale_image

    for path in PANELS.glob("*.png"):
        thumbnail = HERE / "gallery" / "images" / "thumb" / f"sphx_glr_{path.stem}_thumb.png"
        if thumbnail.exists():
            scale_image(path, thumbnail, *THUMBNAIL)


# --- tables -----------------------------------------------------------------------------------------------------------


def named_cells(app, pagename, templatename, context, doctree):
    """Write into each cell of a table of the class "cards" what its column is called, for screens too narrow for it."""
    if 'class="cards' not in context.get("body", ""):
        return
    from bs4 import BeautifulSoup

    page = BeautifulSoup(context["body"], "html.parser")
    for table in page.select("table.cards"):
        names = [cell.get_text(" ", strip=True) for cell in table.select("thead th")]
        for row in table.select("tbody tr"):
            for name, cell in zip(names, row.find_all("td", recursive=False), strict=True):
                cell["data-column"] = name
    context["body"] = str(page)
