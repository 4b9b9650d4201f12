"""What Scrapy sees: the add-on, its scheduler, middlewares and extension.

Translates between Scrapy and the flows, and decides nothing; may import everything but the command line. Begin reading
with `addon`, then `scheduler`.
"""

from crawlsched.addon.addon import Addon

__all__ = ["Addon"]
