"""Selectors: CSS or XPath that chooses the parts of an HTML page that count."""

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import cssselect
from cssselect.parser import CombinedSelector
from cssselect.xpath import XPathExpr
from lxml import etree
from parsel.csstranslator import HTMLTranslator

from crawlsched.change_detection.limits import MOST_BLOCKS

__all__ = ["SELECTION_VERSION", "LinearTranslator", "PageParts"]


_AXES = {" ": "ancestor::", ">": "parent::", "+": "preceding-sibling::*[1]/self::", "~": "preceding-sibling::"}


class LinearTranslator(HTMLTranslator):
    """Translates CSS selectors to XPath that checks each element once, with conditions on the elements around it.

    Notes
    -----
    The usual translation goes from left to right: "p ~ p" becomes ``p/following-sibling::p``. For this XPath libxml2
    collects all later siblings of each p and removes duplicates. That takes 1.5 s for 2,000 siblings, and eight times
    the time for 4,000. Here the left part becomes a condition on the right part: ``p[preceding-sibling::p]``. Its check
    ends at the first sibling that fits. Both translations select the same elements.

    The usual translation is used in two cases. Before a bare ``*`` a condition would have another meaning. Selectors
    within ``:has()`` begin at the element that has the ``:has()``.

    Examples
    --------
    >>> LinearTranslator().css_to_xpath("main > p ~ p")
    'descendant-or-self::p[preceding-sibling::p[parent::main]]'
    """

    def css_to_xpath(self, css: str, prefix: str = "descendant-or-self::") -> str:
        """Translate a selector."""
        usual = HTMLTranslator().css_to_xpath if ":has(" in css.lower() else super().css_to_xpath
        return str(usual(css, prefix))

    def xpath_combinedselector(self, combined: CombinedSelector) -> XPathExpr:
        """Translate the right part of a selector, with the left part as a condition."""
        left, right = self.xpath(combined.selector), self.xpath(combined.subselector)
        is_bare = combined.combinator == " " and right.element == "*" and not right.condition
        if is_bare or left.path or right.path:
            return super().xpath_combinedselector(combined)
        condition = f"[{left.condition}]" if left.condition else ""
        return right.add_condition(f"{_AXES[combined.combinator]}{left.element}{condition}")


#: The versions of the libraries on which a selection depends: a new version may build another tree from the same page.
SELECTION_VERSION = "lxml{}.{}+libxml{}.{}.{}+cssselect{}".format(
    *etree.LXML_VERSION[:2], *etree.LIBXML_VERSION, cssselect.__version__
)

_XPATH_START = re.compile(r"\s*(?:xpath:|/|\./|\()")
_AROUND = re.compile(r"(?:preceding|following)(?:-sibling)?::")
_CROWDS = etree.XPath(f"//*[*[{MOST_BLOCKS}]]")
_SAMPLE = etree.fromstring("<html><body><p/></body></html>")
# Scrapy's selectors have the same namespaces.
_NAMESPACES = {"re": "http://exslt.org/regular-expressions", "set": "http://exslt.org/sets"}
_LITERAL = re.compile(r""""[^"]*"|'[^']*'""")
# The name of a function; "and (" is an operator.
_CALLED = re.compile(r"(?!(?:and|or|div|mod)\b)\b([A-Za-z_][\w.:-]*)\s*\(")


class PageParts:
    r"""Selects parts of HTML pages: those of `keep` (the whole page if it is empty), without those of `drop`.

    Notes
    -----
    Elements are read in the order of the page, and texts and attributes after them. So the order of the selectors does
    not matter. A page with elements more than 256 deep counts as a whole. lxml does not read such a page to its end, so
    a selection would miss changes. A page with 4,096 elements side by side also counts as a whole if a selector checks
    siblings, since this takes quadratic time.

    Examples
    --------
    >>> parts = PageParts(keep=["main", "a.file::attr(href)"], drop=["//small"])
    >>> parts.markup("<nav>12:01</nav><main>Price 5<small>net</small><a class=file href=/1.pdf>File</a></main>")
    '<main>Price 5<span></span><a class="file" href="/1.pdf">File</a></main>\n<p>/1.pdf</p>'
    """

    def __init__(self, keep: Sequence[str], drop: Sequence[str] = ()) -> None:
        keeps = [compiled_selector("keep", number, text) for number, text in enumerate(keep)]
        self._keep = sorted(keeps, key=lambda select: select.path)  # their order does not matter
        self._drop = [compiled_selector("drop", number, text) for number, text in enumerate(drop)]
        #: Whether the time grows with the square of the number of siblings.
        self.looks_around = any(_AROUND.search(select.path) for select in self._keep + self._drop)

    def markup(self, markup: str) -> str:
        """Return the markup of those parts of a page that count."""
        root = _tree(markup)
        if root is None or (self.looks_around and _CROWDS(root)):
            return markup
        try:
            for part in _results(self._drop, root):
                if isinstance(part, etree._Element):
                    part.clear(keep_tail=True)
                    part.tag = "span"
            return "\n".join(_outermost(root, _results(self._keep, root))) if self._keep else _markup_of(root)
        except etree.XPathError:  # on some pages an XPath takes more steps than libxml2 allows
            return markup


def compiled_selector(argument: str, number: int, text: str) -> Any:
    """Compile a CSS selector, or an XPath where it starts with "/", "./", "(" or "xpath:".

    >>> compiled_selector("keep", 1, "div[")
    Traceback (most recent call last):
    ValueError: keep[1] is 'div[', which is no CSS selector (Expected ...); write ...
    """
    is_xpath = bool(_XPATH_START.match(text))
    try:
        xpath = text.strip().removeprefix("xpath:") if is_xpath else LinearTranslator().css_to_xpath(text)
        import parsel.xpathfuncs  # noqa: F401  # the import registers has-class() with lxml

        select = etree.XPath(xpath, namespaces=_NAMESPACES)
        select(_SAMPLE)  # this finds unknown names, unless they are within [...]
        for called in _CALLED.findall(_LITERAL.sub("''", xpath)):
            if not _is_known(called):
                raise ValueError(f"unknown function {called}()")
    except (cssselect.SelectorError, etree.XPathError, ValueError, RecursionError) as error:
        kind = "XPath" if is_xpath else "CSS selector"
        raise ValueError(
            f"{argument}[{number}] is {text!r}, which is no {kind} ({str(error).rstrip('.')}); "
            "write one such as 'main .price', or an XPath such as '//main'."
        ) from None
    return select


def _is_known(function: str) -> bool:
    try:
        etree.XPath(f"{function}()", namespaces=_NAMESPACES)(_SAMPLE)
    except Exception as error:  # a known function may complain that it got no arguments
        return str(error) not in ("Unregistered function", "Undefined namespace prefix")
    return True


def _tree(markup: str) -> Any:
    """Build the tree of a page; return None if lxml does not read the page to its end."""
    # A tree cannot contain control characters or lone surrogates, and a NUL would end it.
    data = markup.replace("\0", "\ufffd").encode("utf-8", "replace")
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
    try:
        root = etree.fromstring(data, parser) if data.strip() else None
    except (etree.LxmlError, ValueError):
        return None
    is_cut = any(entry.level == etree.ErrorLevels.FATAL for entry in parser.error_log)
    return None if is_cut else root


def _results(selectors: Sequence[Callable[[Any], Any]], root: Any) -> list[Any]:
    found = [select(root) for select in selectors]
    return [part for results in found for part in (results if isinstance(results, list) else [str(results)])]


def _outermost(root: Any, parts: list[Any]) -> list[str]:
    """Return the markup of elements in the order of the page, each once, and then texts and attributes."""
    elements = {part for part in parts if isinstance(part, etree._Element)}
    outermost = [node for node in root.iter() if node in elements and elements.isdisjoint(node.iterancestors())]
    return [*map(_markup_of, outermost), *(f"<p>{escape(str(part))}</p>" for part in parts if part not in elements)]


def _markup_of(node: Any) -> str:
    return str(etree.tostring(node, encoding="unicode", method="html", with_tail=False))
