"""Sources: what is known of each sitemap, feed and sender of pings, and when each is read again.

Turns bodies into announcements by `crawlsched.change_signals`; fetches nothing. Begin reading with `sources`.
"""
