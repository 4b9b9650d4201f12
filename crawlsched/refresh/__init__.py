"""The flows: what happens when a request is made, a slot ticks, a response arrives, announcements come.

Each flow asks what decides and what is remembered, and carries out what they say; may import all below the add-on.
Begin reading with `refresher`, the table of contents of the system.
"""
