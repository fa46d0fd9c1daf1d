"""Settings of Sphinx, which makes the site of the sources that ``sources.py`` lays out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import docstrings  # noqa: E402
import formulas  # noqa: E402
import names  # noqa: E402
import reference  # noqa: E402

project = "opencntk"
author = "the authors of opencntk"
copyright = "the authors of opencntk, MIT licence"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(enum|mlflow|numpy|pluggy|PluginManager|NotFittedError)(\..*)?")]  # described by their own packages
default_role = "code"
smartquotes_action = "D"  # dashes alone: the prime of h' is no quotation mark
exclude_patterns = ["**/.ipynb_checkpoints"]

# Titles have the anchors that GitHub gives them.
myst_heading_anchors = 4
nb_custom_formats = {".py": "notebooks.read"}
nb_execution_mode = "off"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
python_maximum_signature_line_length = 90

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "opencntk"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    docstrings.setup(app)
    formulas.setup(app)
    names.setup(app, reference.aliases())
