"""Values: where what is known of a page becomes what crawling it is worth.

Imports evidence and parameters. `posterior_values` is the default, `plug_in_values` the papers' rules; begin reading
with `signalled`.
"""
