"""What Scrapy sees: the add-on, its scheduler, middlewares and extension."""

from crawlsched.addon.addon import Addon

__all__ = ["Addon"]
