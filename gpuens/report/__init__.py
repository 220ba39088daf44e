"""Reports: an HTML page in one file about a fit, a comparison of methods or a choice of the number of clusters.

Reports need matplotlib and jinja2.
"""

from gpuens.report.choice import render_choice
from gpuens.report.comparison import render_comparison
from gpuens.report.fit import render_fit
from gpuens.report.page import refuse_missing

__all__ = ["refuse_missing", "render_choice", "render_comparison", "render_fit"]
