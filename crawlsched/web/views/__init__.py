"""The views: each makes the main part of a page from the store or from a report."""

from crawlsched.web.views.context import Context, Reports

__all__ = ["Context", "Reports"]
