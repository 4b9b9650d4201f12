"""What Scrapy sees: the add-on, its scheduler, middlewares and extension. Begin with `addon`, then `scheduler`."""

from crawlsched.addon.addon import Addon

__all__ = ["Addon"]
