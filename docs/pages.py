"""Changes to the pages of the site: results of bench/, groups of examples, the glossary, tables as cards on a phone."""

import itertools
import pickle
import re
import tomllib
from pathlib import Path

from gpuens.report.glossary import WORDS, Glossary

HERE = Path(__file__).parent
RESULTS = HERE.parent / "bench" / "results"
FOLDER = "generated/results"
GLOSSARY = "```{glossary}\n"  # first line of the list of words
WIDE_INDEX = ":html_theme.sidebar_secondary.remove: true\n\n"  # the same as WIDE, in reStructuredText
WIDE = b"---\nhtml_theme.sidebar_secondary.remove: true\n---\n"  # hides the list of sections beside wide tables
PANELS = HERE / "generated" / "panels"  # folder of the pictures for thumbnails
GROUPS = tomllib.loads((HERE / "groups.toml").read_text())
PANEL_INCHES = (3.4, 2.4)  # inches (width, height) of a panel for a thumbnail, small enough for readable text
LONGEST_LABEL = 32  # most letters of a label at an axis of a thumbnail
MOST_TEXTS = 20  # most texts in a thumbnail
THUMBNAIL = (480, 340)  # pixels (width, height) of a thumbnail


# --- results ----------------------------------------------------------------------------------------------------------


def copy_results():
    """Copy the results and their pictures into the site, so that the repository holds them only once."""
    folder = HERE / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*RESULTS.glob("*.md"), *RESULTS.glob("*.png")]:
        copy, content = folder / path.name, path.read_bytes()
        if path.suffix == ".md":
            content = WIDE + content
        if not copy.exists() or copy.read_bytes() != content:  # Sphinx does not read unchanged files again
            copy.write_bytes(content)


def linked(text):
    """Return a page with links to results of the checkout turned into links to their copies."""
    return re.sub(r"\]\((?:\.\./)*bench/results/([\w-]+\.md)(#[^)]*)?\)", rf"](/{FOLDER}/\1\2)", text)


# --- the glossary -----------------------------------------------------------------------------------------------------


def with_words_of_reports(text):
    """Return the glossary of the site with the words of report pages; of words in both, the site's meaning stays."""
    begin, body = text.split(GLOSSARY)
    entries = dict(entry.split("\n", 1) for entry in body.strip().removesuffix("```").strip().split("\n\n"))
    meanings = {word: f"    {with_links(word, meaning)}" for word, meaning in WORDS.items()} | entries
    listed = (f"{word}\n{meanings[word]}" for word in sorted(meanings, key=str.lower))
    return begin + GLOSSARY + "\n\n".join(listed) + "\n```\n"


def with_links(word, meaning):
    """Return the meaning of a word of report pages with links to other words, not to plain ones like "support"."""
    parts = Glossary()(meaning)
    is_linked = lambda other: other not in (None, word) and (" " in other or not other.islower())  # noqa: E731
    return "".join(f"{{term}}`{text} <{other}>`" if is_linked(other) else text for text, other in parts)


# --- the gallery ------------------------------------------------------------------------------------------------------


def grouped(text):
    """Return the index of the gallery with its thumbnails in the groups of groups.toml."""
    begin, *thumbnails = re.split(r'(?=\.\. raw:: html\n\n    <div class="sphx-glr-thumbcontainer")', text)
    thumbnails[-1] = thumbnails[-1].split(".. thumbnail-parent-div-close")[0]
    by_name = {re.search(r":doc:`/gallery/(\w+)`", thumbnail)[1]: thumbnail for thumbnail in thumbnails}
    groups = {title: group for title, group in GROUPS.items() if title != "panels"}
    chosen = {name for group in groups.values() for name in group["examples"]}
    if absent := chosen - by_name.keys():
        raise ValueError(f"docs/groups.toml names {sorted(absent)}, which docs/examples does not have.")
    parts = [begin[: begin.index(".. raw:: html")]]
    for place, (title, group) in enumerate(groups.items()):
        others = (
            [name for name in by_name if name not in chosen] if place == 0 else []
        )  # the first group has all examples without a group
        shown = "".join(by_name[name] for name in group["examples"] + others)
        opened = '.. raw:: html\n\n    <div class="sphx-glr-thumbnails">\n\n'
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{group['about']}\n\n{opened}{shown}.. raw:: html\n\n    </div>\n\n"
        )
        entries = "".join(f"   /gallery/{name}\n" for name in group["examples"] + others)
        parts.append(f".. toctree::\n   :hidden:\n   :caption: {title}\n\n{entries}\n")
    return WIDE_INDEX + "".join(parts)


def scraped(block, block_vars, gallery_conf, **more):
    """Save the figures of a block as sphinx-gallery does, and a panel of the first figure for the thumbnail."""
    import matplotlib.pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    name = Path(block_vars["src_file"]).stem
    path = PANELS / f"{name}.png"
    if plt.get_fignums() and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_panel(plt.figure(plt.get_fignums()[0]), GROUPS["panels"].get(name, -1), path)
    return matplotlib_scraper(block, block_vars, gallery_conf, **more)


def save_panel(figure, place, path):
    """Write a single panel of a figure, in a small size so that its text is readable in the thumbnail."""
    import matplotlib.pyplot as plt
    from matplotlib.gridspec import GridSpec

    alone = pickle.loads(pickle.dumps(figure))
    panels = [ax for ax in alone.axes if not hasattr(ax, "_colorbar")]
    shown = panels[place]
    for other in [ax for ax in alone.axes if ax is not shown]:
        other.remove()
    shown.set_title("")  # the title of the page is shown below the thumbnail
    for axis in (shown.xaxis, shown.yaxis):
        axis.set_label_text(axis.get_label_text() if len(axis.get_label_text()) <= LONGEST_LABEL else "")
    for written in [shown.get_legend(), *(shown.texts if len(shown.texts) > MOST_TEXTS else [])]:
        if written is not None:
            written.remove()
    if all(image.get_array().ndim == 2 for image in shown.images):
        shown.set_aspect("auto")  # a matrix or a map fills the card; a photograph keeps its shape
    alone.set_layout_engine("constrained")
    alone.set_size_inches(PANEL_INCHES)
    shown.set_subplotspec(GridSpec(1, 1, figure=alone)[0, 0])
    alone.draw_without_rendering()
    for axis in (shown.xaxis, shown.yaxis):
        thin_tick_labels(axis)
    alone.savefig(path, dpi=THUMBNAIL[0] / PANEL_INCHES[0])
    plt.close(alone)


def thin_tick_labels(axis):
    """Hide tick labels of an axis, at equal distances, so that none overlaps the next one."""
    labels = [label for label in axis.get_ticklabels() if label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    step = 1
    while any(box.overlaps(following) for box, following in itertools.pairwise(boxes[::step])):
        step += 1
    for place, label in enumerate(labels):
        label.set_visible(place % step == 0)


def thumbnails(app):
    """Replace sphinx-gallery's thumbnails, which show whole figures, by panels."""
    from sphinx_gallery.utils import scale_image

    for path in PANELS.glob("*.png"):
        thumbnail = HERE / "gallery" / "images" / "thumb" / f"sphx_glr_{path.stem}_thumb.png"
        if thumbnail.exists():
            scale_image(path, thumbnail, *THUMBNAIL)


# --- tables and figures -----------------------------------------------------------------------------------------------


def name_cells(app, pagename, templatename, context, doctree):
    """Write the name of its column into each cell of a table of class "cards", for narrow screens."""
    if page := _parsed(context, 'class="cards'):
        for table in page.select("table.cards"):
            names = [cell.get_text(" ", strip=True) for cell in table.select("thead th")]
            for row in table.select("tbody tr"):
                for name, cell in zip(names, row.find_all("td", recursive=False), strict=True):
                    cell["data-column"] = name
        context["body"] = str(page)


def let_figures_scroll(app, pagename, templatename, context, doctree):
    """Put each figure of an example into a box that scrolls on narrow screens."""
    if page := _parsed(context, "sphx-glr-single-img"):
        for figure in page.select("img.sphx-glr-single-img"):
            figure.wrap(page.new_tag("div", attrs={"class": "scrolls"}))
        context["body"] = str(page)


def _parsed(context, part):
    """Return the parsed body of a page that contains a text, else None."""
    if part not in context.get("body", ""):
        return None
    from bs4 import BeautifulSoup

    return BeautifulSoup(context["body"], "html.parser")
