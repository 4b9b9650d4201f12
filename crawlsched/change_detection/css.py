"""CSS selectors as XPaths that no page can make slow."""

from cssselect.parser import Relation
from cssselect.xpath import XPathExpr
from parsel.csstranslator import HTMLTranslator

__all__ = ["LinearTranslator"]


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

    def xpath_descendant_combinator(self, left: XPathExpr, right: XPathExpr) -> XPathExpr:
        """Right is below left."""
        if right.element == "*" and not right.condition:
            return super().xpath_descendant_combinator(left, right)
        return self._conditioned("ancestor::", left, right) or super().xpath_descendant_combinator(left, right)

    def xpath_child_combinator(self, left: XPathExpr, right: XPathExpr) -> XPathExpr:
        """Right is directly below left."""
        return self._conditioned("parent::", left, right) or super().xpath_child_combinator(left, right)

    def xpath_direct_adjacent_combinator(self, left: XPathExpr, right: XPathExpr) -> XPathExpr:
        """Right stands directly behind left."""
        conditioned = self._conditioned("preceding-sibling::*[1]/self::", left, right)
        return conditioned or super().xpath_direct_adjacent_combinator(left, right)

    def xpath_indirect_adjacent_combinator(self, left: XPathExpr, right: XPathExpr) -> XPathExpr:
        """Right stands somewhere behind left."""
        conditioned = self._conditioned("preceding-sibling::", left, right)
        return conditioned or super().xpath_indirect_adjacent_combinator(left, right)

    def _conditioned(self, axis: str, left: XPathExpr, right: XPathExpr) -> XPathExpr | None:
        if self._n_relations or left.path or right.path:
            return None
        condition = f"[{left.condition}]" if left.condition else ""
        return right.add_condition(f"{axis}{left.element}{condition}")
