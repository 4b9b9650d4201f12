"""The views: each makes what stands in the middle of a page out of what it asks the store or a report."""

from crawlsched.web.views.context import Context, Reports

__all__ = ["Context", "Reports"]
