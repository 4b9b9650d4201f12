# Scrapy settings for example project
#
# For simplicity, this file contains only settings considered important or
# commonly used. You can find more settings consulting the documentation:
#
#     https://docs.scrapy.org/en/latest/topics/settings.html
#     https://docs.scrapy.org/en/latest/topics/downloader-middleware.html
#     https://docs.scrapy.org/en/latest/topics/spider-middleware.html

BOT_NAME = "example"

SPIDER_MODULES = ["example.spiders"]
NEWSPIDER_MODULE = "example.spiders"

ADDONS = {"crawlsched.Addon": 500}

# The rate of all requests: pages, sitemaps, robots.txt files and redirects together. The site has about 510 pages, so
# each could be visited every 20 s; a third of them changes faster than that.
CRAWLSCHED_BANDWIDTH = "25/s"

# The living site changes fast: one of its seconds stands for an hour elsewhere. So these settings are small; a real
# project needs none of them.
CRAWLSCHED_SOURCE_INTERVAL = 3  # seconds between two looks at a sitemap
CRAWLSCHED_PRIVATE_ADDRESSES = ["127.0.0.0/8"]  # the demo's sites are on this machine, and name their sitemaps
CRAWLSCHED_ERROR_INTERVAL = 2  # spells of errors last 4 s

# crawlsched visits a page that failed again. Scrapy's middleware would also try it twice at once, and each try takes a
# slot.
RETRY_ENABLED = False

# The blog shows every visitor another number; everything else that differs between two fetches is invisible.
CRAWLSCHED_FINGERPRINT_DROP = [".visitors"]

# Writes the statistics at the end, if `FINAL_STATS_FILE` names a file: the demo reads them.
EXTENSIONS = {"example.final_stats.FinalStats": 0}


# Crawl responsibly by identifying yourself (and your website) on the user-agent
#USER_AGENT = "example (+http://www.yourdomain.com)"

# Obey robots.txt rules
ROBOTSTXT_OBEY = True

# Concurrency and throttling settings
#CONCURRENT_REQUESTS = 16
# The museum answers after 1.2 s, and its pages are worth more than one visit in that time.
CONCURRENT_REQUESTS_PER_DOMAIN = 8
# startproject writes a delay of 1 s for each host. Ten hosts would then get 10/s instead of 25/s. These hosts are ours,
# and need no delay. Keep it for other people's sites: crawlsched then sends the next best page of another host, and
# slots for which no host is free stay unused.
DOWNLOAD_DELAY = 0

# Disable cookies (enabled by default)
#COOKIES_ENABLED = False

# Disable Telnet Console (enabled by default)
#TELNETCONSOLE_ENABLED = False

# Override the default request headers:
#DEFAULT_REQUEST_HEADERS = {
#    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
#    "Accept-Language": "en",
#}

# Enable or disable spider middlewares
# See https://docs.scrapy.org/en/latest/topics/spider-middleware.html
#SPIDER_MIDDLEWARES = {
#    "example.middlewares.ExampleSpiderMiddleware": 543,
#}

# Enable or disable downloader middlewares
# See https://docs.scrapy.org/en/latest/topics/downloader-middleware.html
#DOWNLOADER_MIDDLEWARES = {
#    "example.middlewares.ExampleDownloaderMiddleware": 543,
#}

# Enable or disable extensions
# See https://docs.scrapy.org/en/latest/topics/extensions.html
#EXTENSIONS = {
#    "scrapy.extensions.telnet.TelnetConsole": None,
#}

# Configure item pipelines
# See https://docs.scrapy.org/en/latest/topics/item-pipeline.html
#ITEM_PIPELINES = {
#    "example.pipelines.ExamplePipeline": 300,
#}

# Enable and configure the AutoThrottle extension (disabled by default)
# See https://docs.scrapy.org/en/latest/topics/autothrottle.html
#AUTOTHROTTLE_ENABLED = True
# The initial download delay
#AUTOTHROTTLE_START_DELAY = 5
# The maximum download delay to be set in case of high latencies
#AUTOTHROTTLE_MAX_DELAY = 60
# The average number of requests Scrapy should be sending in parallel to
# each remote server
#AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0
# Enable showing throttling stats for every response received:
#AUTOTHROTTLE_DEBUG = False

# Enable and configure HTTP caching (disabled by default)
# See https://docs.scrapy.org/en/latest/topics/downloader-middleware.html#httpcache-middleware-settings
#HTTPCACHE_ENABLED = True
#HTTPCACHE_EXPIRATION_SECS = 0
#HTTPCACHE_DIR = "httpcache"
#HTTPCACHE_IGNORE_HTTP_CODES = []
#HTTPCACHE_STORAGE = "scrapy.extensions.httpcache.FilesystemCacheStorage"

# Set settings whose default value is deprecated to a future-proof value
FEED_EXPORT_ENCODING = "utf-8"
