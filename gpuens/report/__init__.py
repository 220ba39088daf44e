"""Reports: a page of HTML in one file, of a fit or of a comparison of methods. They need matplotlib and jinja2."""

from gpuens.report.comparison import of_comparison
from gpuens.report.fit import of_fit
from gpuens.report.page import refuse_missing

__all__ = ["of_comparison", "of_fit", "refuse_missing"]
