"""Nothing is held back in silence: what suppresses a delivery is counted, shown, listed, and can be turned off."""

from hashlib import blake2b

from tests.crawling import YIELDS, Project, spider

N = 24
PARSE = f"""
for number in range({N}):
    yield response.follow(f"/page/{{number}}", self.parse_page)
yield response.follow("/lambda", lambda response: None)
yield response.follow("/captcha", self.parse_captcha)
"""
ALSO = f"""
def parse_page(self, response):
    {YIELDS}

def parse_captcha(self, response):
    raise crawlsched.NotThePage("a captcha")
"""


def test_what_is_held_back_is_said_and_can_be_turned_off(site, tmp_path):
    """An edit of the template of a whole site, a lambda, a captcha: each by host and reason, with the setting."""
    menu = {"of": "spring and what it brings"}

    def page(request):
        own = blake2b(request.path.encode(), digest_size=8).hexdigest()
        return f"<nav>the menu of {menu['of']}</nav><p>{own} and other words of this page</p>"

    site.default = page
    text = spider([site.url("/")], PARSE, before="import crawlsched", also=ALSO)
    project = Project(tmp_path, text, one_pass=True, bandwidth="100/s")
    assert len(project.run().items) == N
    menu["of"] = "summer, with rain and sun"
    crawl = project.run()
    assert crawl.items == []
    assert crawl.log.count("CRAWLSCHED_WITHHOLD = {'template': False} turns that off") == 1
    assert f"1 so far, such as {site.url('/page/')}" in crawl.log
    (row,) = crawl.report("withheld", "--reason", "template", "--host", "127.0.0.1")["withheld"]
    assert (row["host"], row["reason"], row["n"]) == ("127.0.0.1", "template", N)
    status = crawl.said("status")
    assert f"held back {N} times (template), of 127.0.0.1" in status
    assert "(not_data), of 127.0.0.1" in status
    assert "(not_the_page), of 127.0.0.1" in status
    menu["of"] = "autumn, with wind and fog"
    assert len(project.run(withhold=False).items) == N
    # And the pages of a host can be had again, changed or not.
    crawl.said("recrawl", "--host", "127.0.0.1")
    assert len(project.run().items) == N
