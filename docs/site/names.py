"""Links from what pages say in code to the reference, and programs side by side."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?P<package>(?:C|cntk)\.)?(?P<name>[A-Za-z_][\w.]*)(?P<call>\(.*\))?", re.DOTALL)
SIDE_BY_SIDE = "<!-- side by side -->"


def setup(app: Sphinx, aliases: dict[str, frozenset[str]]) -> None:
    app.connect("doctree-read", lambda app, doctree: _note_other_names(app, doctree, aliases))
    app.connect("missing-reference", lambda app, env, node, content: _nearby(app, node, content, aliases))
    app.add_post_transform(Links)
    app.add_transform(SideBySide)


def _note_other_names(app: Sphinx, doctree: nodes.document, aliases: dict[str, frozenset[str]]) -> None:
    """Let references find a thing, and the members of a class, under all its names."""
    domain: PythonDomain = app.env.domains.python_domain
    for signature in doctree.findall(addnodes.desc_signature):
        described = signature.get("module"), signature.get("fullname")
        if not all(described):
            continue
        name = ".".join(described)
        for known in (known for known in (name, name.rpartition(".")[0]) if known in aliases):
            for other in aliases[known]:
                path = other + name.removeprefix(known)
                if path not in domain.objects:
                    domain.note_object(path, signature.parent["objtype"], signature["ids"][0], aliased=True, location=signature)


def _nearby(
    app: Sphinx, node: addnodes.pending_xref, content: nodes.TextElement, aliases: dict[str, frozenset[str]]
) -> nodes.Node | None:
    """What a docstring refers to by the end of its name; and what is inside the package, which the reference does not describe."""
    if node["refdomain"] != "py":
        return None
    objects, target = app.env.domains.python_domain.objects, node["reftarget"]
    found = [name for name, entry in objects.items() if not entry.aliased and f".{name}".endswith(f".{target}")]
    if len(found) == 1:
        entry = objects[found[0]]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, found[0])
    around = (node.get("py:module"), node.get("py:class"))
    homes = [name.rpartition(".")[0] for name in aliases.get(".".join(part for part in around if part), ())]
    paths = [target, *(".".join(part for part in (*around[:n], target) if part) for n in (1, 2)), *(f"{home}.{target}" for home in homes)]
    return content if any(_exists(path) for path in paths) else None


def _exists(path: str) -> bool:
    """Whether an object of the package has this path."""
    if not path.startswith("cntk."):
        return False
    module, _, name = path.rpartition(".")
    try:
        import_module(path)
    except ImportError:
        try:
            return hasattr(pkgutil.resolve_name(module), name)
        except (ImportError, AttributeError):
            return False
    return True


class Links(SphinxPostTransform):
    """Makes a link of a name in code, such as ``C.relu`` or ``Trainer``, where the reference has it."""

    default_priority = 20

    def run(self, **kwargs: Any) -> None:
        domain: PythonDomain = self.env.domains.python_domain
        short = self._short_names(domain)
        for literal in list(self.document.findall(nodes.literal)):
            if _is_within(literal, (nodes.reference, nodes.title, addnodes.desc_signature)):
                continue
            name = self._name(literal, domain, short)
            if name is not None and (found := domain.objects[name]).docname != self.env.docname:
                link = make_refnode(self.app.builder, self.env.docname, found.docname, found.node_id, literal.deepcopy(), name)
                literal.replace_self(link)

    def _short_names(self, domain: PythonDomain) -> dict[str, str]:
        """Names without their module, where only one thing has them."""
        found: dict[str, list[str]] = {}
        for name, entry in domain.objects.items():
            if not entry.aliased and entry.objtype in ("class", "function", "exception"):
                found.setdefault(name.rpartition(".")[2], []).append(name)
        return {short: names[0] for short, names in found.items() if len(names) == 1}

    def _name(self, literal: nodes.literal, domain: PythonDomain, short: dict[str, str]) -> str | None:
        match = NAME.fullmatch(literal.astext())
        if match is None:
            return None
        name = match["name"]
        tells = match["package"] or match["call"] or re.search("[A-Z_.]", name) or _is_within(literal, (nodes.entry,))
        if not tells:
            return None
        if f"cntk.{name}" in domain.objects:
            return f"cntk.{name}"
        return None if match["package"] else short.get(name)


class SideBySide(SphinxTransform):
    """Puts the two blocks of code behind a comment ``side by side`` beside one another, with the lines above them."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for comment in [node for node in self.document.findall(nodes.raw) if node.astext().strip() == SIDE_BY_SIDE]:
            parent, place = comment.parent, comment.parent.index(comment)
            following = parent[place + 1 : place + 5]
            sides = [nodes.container("", *following[:2]), nodes.container("", *following[2:])]
            del parent[place : place + 5]
            parent.insert(place, nodes.container("", *sides, classes=["side-by-side"]))


def _is_within(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    while node is not None:
        if isinstance(node, kinds):
            return True
        node = node.parent
    return False
