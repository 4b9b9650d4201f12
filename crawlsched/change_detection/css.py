"""CSS selectors as XPaths that no page can make slow."""

from cssselect.parser import CombinedSelector, Relation
from cssselect.xpath import XPathExpr
from parsel.csstranslator import HTMLTranslator

__all__ = ["LinearTranslator"]

_AXES = {" ": "ancestor::", ">": "parent::", "+": "preceding-sibling::*[1]/self::", "~": "preceding-sibling::"}


class LinearTranslator(HTMLTranslator):
    """Translates CSS selectors so that each element is looked at once, and its surroundings from there.

    Notes
    -----
    The usual translation walks from the left part of a selector to the right one: "p ~ p" becomes
    ``p/following-sibling::p``, for which libxml2 collects all later siblings of each p and takes doubles out again:
    1.5 s for 2,000 siblings, and eight times that for twice as many. Here the left part is a condition on the right
    one, ``p[preceding-sibling::p]``, which ends at the first sibling that fits. The elements selected are the same.

    Within ``:has()`` and before a bare ``*``, where a condition would mean something else, the usual translation stays.

    Examples
    --------
    >>> LinearTranslator().css_to_xpath("main > p ~ p")
    'descendant-or-self::p[preceding-sibling::p[parent::main]]'
    """

    _n_relations = 0

    def xpath_relation(self, relation: Relation) -> XPathExpr:
        """Translate ``:has()``, within which selectors begin at its element."""
        self._n_relations += 1
        try:
            return super().xpath_relation(relation)
        finally:
            self._n_relations -= 1

    def xpath_combinedselector(self, combined: CombinedSelector) -> XPathExpr:
        """Translate a selector on the right, with what has to be around it on the left."""
        left, right = self.xpath(combined.selector), self.xpath(combined.subselector)
        is_bare = combined.combinator == " " and right.element == "*" and not right.condition
        if is_bare or self._n_relations or left.path or right.path:
            return super().xpath_combinedselector(combined)
        condition = f"[{left.condition}]" if left.condition else ""
        return right.add_condition(f"{_AXES[combined.combinator]}{left.element}{condition}")
