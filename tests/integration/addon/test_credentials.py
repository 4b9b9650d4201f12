"""Credentials: a page that needs them is never sent without, and they stand in the database only if they may."""

from tests.crawling import Project, spider

LOGS_IN = """
async def start(self):
    open, mine = self.start_urls
    yield scrapy.Request(open)
    if self.settings.getbool("TEST_LOG_IN"):
        headers = {"Authorization": "Bearer s3cret-token"}
        yield scrapy.Request(mine, self.parse, headers=headers, cookies={"session": "s3cret-cookie"})
"""


def test_pages_with_credentials_are_never_sent_without(site, tmp_path):
    """They are kept by default; with False they are struck out, and the page goes only when the spider asks for it."""
    sent = []

    def mine(request):
        sent.append(request.headers.get("Authorization"))
        return "<p>mine</p>"

    text = spider([site.page("/open", "<p>open</p>"), site.page("/mine", mine)], also=LOGS_IN)
    project = Project(tmp_path, text, COOKIES_ENABLED=False, bandwidth="10/s", visits=5)

    def secrets_on_disk():
        return any(b"s3cret" in file.read_bytes() for file in tmp_path.glob("crawl.db*"))

    kept = project.run(TEST_LOG_IN=True)
    assert "CRAWLSCHED_KEEP_CREDENTIALS" in kept.log
    assert secrets_on_disk()
    sent.clear()
    project.run()  # by what was kept
    assert set(sent) == {"Bearer s3cret-token"}

    sent.clear()
    without = project.run(keep_credentials=False)
    assert sent == []
    assert without.stats["crawlsched/withheld/credentials"] == 1
    assert not secrets_on_disk()
    again = project.run(keep_credentials=False, TEST_LOG_IN=True)
    assert sent == ["Bearer s3cret-token"]
    assert "CRAWLSCHED_KEEP_CREDENTIALS is False" in again.log
    assert not secrets_on_disk()
    assert again.returncode == 0
