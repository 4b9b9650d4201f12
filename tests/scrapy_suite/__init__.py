"""Scrapy's own tests of crawling, run with and without the add-on (`make scrapy-tests`)."""
