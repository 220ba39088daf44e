"""Reports: an HTML page in one file about a fit, a comparison of methods or a choice of the number of clusters.

Reports need matplotlib and jinja2.
"""

from gpuens.report.choice import of_choice
from gpuens.report.comparison import of_comparison
from gpuens.report.fit import of_fit
from gpuens.report.page import refuse_missing

__all__ = ["of_choice", "of_comparison", "of_fit", "refuse_missing"]
