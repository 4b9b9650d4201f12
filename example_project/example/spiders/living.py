import time

import scrapy

from example.items import ChangedPage


class LivingSpider(scrapy.Spider):
    """Crawl the living site: an ordinary spider without any code for crawlsched.

    ``scrapy crawl living -a site=http://127.0.0.11:8000/``
    """

    name = "living"

    def __init__(self, site, **arguments):
        super().__init__(**arguments)
        self.start_urls = [site]

    def parse(self, response):
        """Yield an item for a new or changed page; unchanged pages do not come here."""
        yield ChangedPage(
            url=response.url,
            title=response.css("h1::text").get(""),
            text="\n".join(response.css("article p::text").getall()),
            found_at=time.time(),
        )
        yield from response.follow_all(css="a")
