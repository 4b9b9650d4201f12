import time

import scrapy

from example.items import ChangedPage


class LivingSpider(scrapy.Spider):
    """Keeps the living site: an ordinary spider, which knows nothing of crawlsched.

    ``scrapy crawl living -a site=http://127.0.0.11:8000/``
    """

    name = "living"

    def __init__(self, site, **arguments):
        super().__init__(**arguments)
        self.start_urls = [site]

    def parse(self, response):
        """Take a new page or a changed one; pages that did not change never get here."""
        yield ChangedPage(
            url=response.url,
            title=response.css("h1::text").get(""),
            text="\n".join(response.css("article p::text").getall()),
            found_at=time.time(),
        )
        yield from response.follow_all(css="a")
