"""``cntk new-plugin``: a package with a plugin and its test, to start from."""

from __future__ import annotations

import io
import json
import re
import sys
import tokenize
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import NamedTuple

from cntk.core.extension.plugins import REGISTRIES, Registry, installed, is_built_in

from .arguments import Parser
from .templates import filled, write_new


class Kind(NamedTuple):
    """What a plugin may register: in words, with their article, the hook, and whether users find it by its class."""

    article: str
    words: str
    hook: str
    by_class: bool = False

    @property
    def registry(self) -> Registry:
        """What others have registered of the kind."""
        return REGISTRIES[self.hook]


KINDS = {
    "operator": Kind("An", "operator", "cntk_register_ops"),
    "kernel": Kind("A", "kernel", "cntk_register_kernels"),
    "backend": Kind("A", "backend", "cntk_register_backends"),
    "learner": Kind("A", "learner", "cntk_register_learners"),
    "deserializer": Kind("A", "deserializer", "cntk_register_deserializers", by_class=True),
    "progress-writer": Kind("A", "progress writer", "cntk_register_progress_writers", by_class=True),
    "strategy": Kind("A", "distributed strategy", "cntk_register_distributed_strategies"),
    "model-format": Kind("A", "model format", "cntk_register_model_formats"),
    "pass": Kind("A", "pass", "cntk_register_passes"),
    "command": Kind("A", "command", "cntk_register_commands"),
}
"""By the name of the folder with its templates."""

FILES = {
    "package/pyproject.toml.in": "pyproject.toml",
    "package/README.md.in": "README.md",
    "package/gitignore.in": ".gitignore",
    "package/test.yml.in": ".github/workflows/test.yml",
    "$kind/__init__.py.in": "src/$package/__init__.py",
    "$kind/plugin.py.in": "src/$package/$name.py",
    "$kind/test.py.in": "tests/test_$name.py",
}
"""The path of each template's file in the package."""

DISTRIBUTION = re.compile(r"[a-z]([a-z0-9]|[-_.](?=[a-z0-9]))*", re.ASCII)
PREFIX = re.compile(r"(open)?cntk_")
"""The prefix of packages' names, which names inside them lack."""

TAKEN = frozenset({"_cntk_py", "cntk", "numba", "numpy", "opencntk", "pluggy", "pytest", "scipy", "test", "tests"})
"""Packages that a plugin, or its test, is installed beside."""


def run(arguments: Sequence[str]) -> int:
    """Make a package with a plugin: the code, its registration, a test that it conforms, and what CI runs.

    Args:
        arguments: the package's name, ``--kind`` and ``--folder``, or ``--help``.

    Returns:
        0.

    Raises:
        ValueError: the package cannot have the name.
        FileExistsError: there is something in the folder.
        OSError: it cannot be written.

    >>> import pathlib, tempfile
    >>> from cntk.commands.new_plugin import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(["cntk-softcap", "--folder", folder])
    ...     sorted(path.name for path in pathlib.Path(folder, "src", "cntk_softcap").iterdir())
    An operator, softcap, in ...
    0
    ['__init__.py', 'py.typed', 'softcap.py']
    """
    parser = Parser(prog="cntk new-plugin", description="Make a package with a plugin, a small one that is complete.")
    parser.add_argument("name", help="what the package is called where it is published, such as cntk-softcap")
    parser.add_argument("--kind", choices=KINDS, default="operator", help="what the plugin is, %(default)s where nothing is said")
    parser.add_argument("--folder", type=Path, help="where to put it; the package's name where nothing is said")
    parser.add_argument("--json", action="store_true", help="print what was made for programs")
    options = parser.parse_args(arguments)
    folder = Path(options.name) if options.folder is None else options.folder
    package = rendered(options.name, options.kind)
    write_new(folder, {path: text.encode() for path, text in package.items()})
    if options.json:
        print(json.dumps({"folder": str(folder), "kind": options.kind, "files": list(package)}, indent=2))
        return 0
    names, kind = names_of(options.name), KINDS[options.kind]
    print(f"{kind.article} {kind.words}, {names['Class' if kind.by_class else 'name']}, in {folder}:")
    print(*(f"    {path}" for path in package), sep="\n")
    print(f'next:\n    cd {folder}\n    pip install -e ".[test]"\n    pytest\n    cntk plugins')
    return 0


def rendered(distribution: str, kind: str) -> dict[str, str]:
    """The files of a package, by their paths in it.

    Args:
        distribution: name of the package.
        kind: one of :data:`KINDS`.

    Raises:
        ValueError: the package cannot have this name; the message says why.
    """
    names = names_of(distribution)
    _check_names(distribution, names)
    _check_is_free(distribution, names, KINDS[kind])
    package = _package(kind, names)
    _check_is_no_word(distribution, names, _package(kind, STAND_INS))
    return package


STAND_INS = {"distribution": "-", "package": "package_", "name": "name_", "Class": "Class_"}
"""Names that no template uses."""


def names_of(distribution: str) -> dict[str, str]:
    """The names that templates ask for, of a package and of what is in it.

    >>> from cntk.commands.new_plugin import names_of
    >>> names_of("cntk-soft-cap")
    {'distribution': 'cntk-soft-cap', 'package': 'cntk_soft_cap', 'name': 'soft_cap', 'Class': 'SoftCap'}
    """
    package = re.sub(r"[-_.]+", "_", distribution)
    name = PREFIX.sub("", package, count=1)
    return {"distribution": distribution, "package": package, "name": name, "Class": "".join(map(str.capitalize, name.split("_")))}


def _package(kind: str, names: dict[str, str]) -> dict[str, str]:
    values = {**names, "article": KINDS[kind].article, "kind": KINDS[kind].words}
    paths = {template.replace("$kind", kind): path for template, path in FILES.items()}
    return filled("plugin-templates", paths, values) | {f"src/{names['package']}/py.typed": ""}


def _check_names(distribution: str, names: dict[str, str]) -> None:
    """Check that a name is a distribution's, and gives no names that Python or installed packages have."""
    if not DISTRIBUTION.fullmatch(distribution):
        raise ValueError(
            f"{distribution!r} cannot be the name of a package: expected small letters, digits, and '-', '_' or '.' between them, "
            "with a letter first, such as cntk-softcap"
        )
    package, name = names["package"], names["name"]
    if package in TAKEN or package in sys.stdlib_module_names:
        raise ValueError(f"{distribution!r} cannot be the name of a package: there is a module {package} already; try cntk-{distribution}")
    for word in (package, name):
        if iskeyword(word) or not word.isidentifier():
            raise ValueError(f"{distribution!r} cannot be the name of a package: '{word}' is no name in Python")


def _check_is_free(distribution: str, names: dict[str, str], kind: Kind) -> None:
    """Refuse a name that a plugin has already."""
    registered = names["Class" if kind.by_class else "name"]
    if registered in kind.registry or any(hasattr(import_module(module), registered) for module in kind.registry.shown_in):
        raise ValueError(f"'{distribution}': its {kind.words} would be called {registered}, which cntk has already; give it another name")
    if names["name"] in {point.name for point in installed() if is_built_in(point)}:
        raise ValueError(f"'{distribution}': the plugin would be called {names['name']}, as a built-in one is; give it another name")


def _check_is_no_word(distribution: str, names: dict[str, str], package: dict[str, str]) -> None:
    """Refuse a name that the templates use for something else."""
    code = [text for path, text in package.items() if path.endswith(".py")]
    words = {token.string for text in code for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.NAME}
    for name in ("name", "Class"):
        if names[name] in words:
            raise ValueError(f"'{distribution}': {names[name]} is a name that the plugin's own code uses; give it another one")
