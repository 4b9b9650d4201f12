"""A running crawl: its parts, and the one place where they are made and wired.

Begin reading with `refresher`; then `admission` (a request is made), `dispatcher` (a slot ticks), `responses` (a
response arrives; `crawlsched.content` judges it), `polls` (ChangeSignals arrive).
"""
