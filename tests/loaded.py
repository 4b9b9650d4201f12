"""What a crawl loads, for `tests.prepared`: all of it but the reactor, which each crawl chooses for itself."""

import gc

import scrapy.cmdline  # noqa: F401

import crawlsched.addon  # noqa: F401

# What is here stays, in each crawl: none looks through it for garbage.
gc.collect()
gc.freeze()
