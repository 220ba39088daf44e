"""Pages as readers see them, in a headless Chromium on a phone and on a desk, in light and dark mode.

Nothing is wider than the window, no picture is cut, pictures at the beginning fill a phone, and all text is legible.
"""

import base64
import re

import numpy as np
import pytest
from browser import Browser
from conftest import structured_labels

from gpuens import Ensemble, Graph, Spatial, choose_k, compare
from gpuens.methods import LWEA
from gpuens.report import render_choice, render_comparison, render_fit

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
pytest.importorskip("jinja2", reason="pages need jinja2")

LABELS, TRUTH = structured_labels(150, 6, 4, noise=0.1, missing=0.05, seed=2)
WIDE_FACTS = {f"option {i}": "x" * 300 for i in range(60)} | {"command": ["gpuens", "run", "y" * 300]}
PHONE, DESK = 390, 1280  # pixels
LOOK = """(() => {
  const faults = new Set(), width = innerWidth
  const numbers = text => text.match(/[\\d.]+/g).map(Number)
  const light = value => (value /= 255) <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4
  const luminance = ([r, g, b]) => .2126 * light(r) + .7152 * light(g) + .0722 * light(b)
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y)
    return (high + .05) / (low + .05)
  }
  const background = element => {
    for (; element; element = element.parentElement) {
      const color = numbers(getComputedStyle(element).backgroundColor)
      if (color.length < 4 || color[3] > 0) return color
    }
    return [255, 255, 255]
  }
  const name = element => element.tagName + ' ' + (element.className.baseVal ?? element.className)
  for (const element of document.querySelectorAll('body *')) {
    const box = element.getBoundingClientRect()
    if (!box.width || element.closest('defs')) continue
    const scrolls = element.parentElement.closest('.table')
    if (!scrolls && (box.right > width + 1 || box.left < -1)) faults.add('wide: ' + name(element))
    const says = [...element.childNodes].some(node => node.nodeType == 3 && node.textContent.trim())
    if (says && !element.closest('svg')) {
      const value = contrast(numbers(getComputedStyle(element).color), background(element))
      if (value < 4.5) faults.add('pale: ' + name(element) + ' ' + value.toFixed(1))
    }
  }
  const paper = background(document.body)
  for (const picture of document.querySelectorAll('svg[role=img]')) {
    const frame = picture.getBoundingClientRect(), title = picture.getAttribute('aria-label')
    for (const letter of picture.querySelectorAll('use[href*="-"]')) {  // the others are markers
      const box = letter.getBoundingClientRect(), fill = getComputedStyle(letter).fill
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
        faults.add('cut: ' + title)
      if (!letter.closest('.mirrored') && contrast(numbers(fill), paper) < 3) faults.add('pale letters: ' + title)
    }
    const shown = picture.closest('.front') && width < 500
    if (shown && frame.width < .9 * document.querySelector('main').clientWidth) faults.add('narrow: ' + title)
  }
  if (matchMedia('(prefers-color-scheme: dark)').matches && luminance(paper) > .2) faults.add('bright')
  return [...faults].slice(0, 20)
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    shown = Browser(tmp_path_factory.mktemp("browser"))
    yield shown
    shown.close()


def draw_fit():
    return render_fit("Consensus", LWEA(4).fit(LABELS), WIDE_FACTS)


def draw_map():
    rng, field = np.random.default_rng(0), np.repeat([[0, 0, 0, 1, 1, 1]], 10, axis=0).repeat(2, axis=1).ravel()
    members = [np.where(rng.random(120) < 0.2, rng.integers(2, size=120), field) for _ in range(4)]
    return render_fit("Domains", Spatial(2).fit(Ensemble(members), graph=Graph.grid((10, 12))), {})


def draw_choice():
    return render_choice(choose_k(LABELS, ks=range(2, 9)), "Choice")


def draw_comparison():
    return render_comparison(compare(LABELS, 4, methods=["lwea", "lwgp", "kcc"]), "Comparison")


def look(browser, path, width, scheme):
    """Return the faults of a page whose parts are all unfolded."""
    browser.resize(width)
    browser.prefer(scheme)
    browser.open(path)
    browser.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    return browser.evaluate(LOOK)


@pytest.mark.parametrize("draw", [draw_fit, draw_map, draw_choice, draw_comparison])
def test_pages_are_whole_and_legible(tmp_path, browser, draw):
    path = tmp_path / "page.html"
    path.write_bytes(draw())
    faults = {
        (width, scheme): seen
        for width in (PHONE, DESK)
        for scheme in ("light", "dark")
        if (seen := look(browser, path, width, scheme))
    }
    assert faults == {}


PLANTED = {
    "wide": ("figure svg {display: block; width: 100%", "figure svg {display: block; width: 900px", "light"),
    "narrow": ("figure svg {display: block; width: 100%", "figure svg {display: block; width: 300px", "light"),
    "cut": ('viewBox="0 0', 'viewBox="40 0', "light"),
    "pale": ("--ink: #1b2733", "--ink: #999999", "light"),
    "pale letters": ("fill: currentColor", "fill: #8899aa", "light"),
    "bright": ("@media screen and (prefers-color-scheme: dark)", "@media screen and (max-width: 1px)", "dark"),
}


@pytest.fixture(scope="module")
def page_of_fit():
    return draw_fit().decode()


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_seen(tmp_path, browser, page_of_fit, fault):
    sound, planted, scheme = PLANTED[fault]
    assert sound in page_of_fit
    (tmp_path / "page.html").write_text(page_of_fit.replace(sound, planted), encoding="utf-8")
    kinds = {seen.partition(":")[0] for seen in look(browser, tmp_path / "page.html", PHONE, scheme)}
    assert fault in kinds


WIDER = "[...document.querySelectorAll('html, body *')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth)"


def test_a_page_on_paper_and_by_keyboard(tmp_path, browser):
    """The page shows the keyboard focus, describes its pictures and prints completely."""
    (tmp_path / "page.html").write_bytes(draw_fit())
    browser.open(tmp_path / "page.html")
    pictures = "[...document.querySelectorAll('svg[role=img]')]"
    assert browser.evaluate(f"{pictures}.filter(i => !i.clientWidth || i.ariaLabel.length < 10)") == []

    browser.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    regions = browser.evaluate("document.querySelectorAll('.table').length")
    assert regions == 4
    for region in range(regions):
        for _ in range(60):  # Tab reaches the links of terms and the summaries before the tables
            browser.tab()
            if browser.evaluate("document.activeElement.className") == "table":
                break
        assert browser.evaluate("[...document.querySelectorAll('.table')].indexOf(document.activeElement)") == region
        assert browser.evaluate("document.activeElement.getAttribute('aria-label').length") > 5
        outline = browser.evaluate("(s => [s.outlineStyle, s.outlineWidth])(getComputedStyle(document.activeElement))")
        assert outline[0] != "none"
        assert float(outline[1].removesuffix("px")) >= 1

    pdf = base64.b64decode(browser("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    assert pdf[:5] == b"%PDF-"
    assert 2 < len(re.findall(rb"/Type\s*/Page\b", pdf)) < 30
    assert len(pdf) < 3e6
    browser("Emulation.setEmulatedMedia", media="print")
    # width of the printable area of A4 paper
    browser.resize(718, 1047)
    assert browser.evaluate(f"{WIDER}.map(e => e.tagName + e.className)") == []
    assert {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}.isdisjoint(browser.events)
