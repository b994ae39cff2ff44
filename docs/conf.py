"""How Sphinx builds the site: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from annotrace.version import __version__

project = "annotrace"
author = "The annotrace developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
# In docstrings a single backtick quotes a name.
default_role = "code"

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"annotrace {__version__}"
html_copy_source = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["annotrace.css"]
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5a8f",
        "color-brand-content": "#0b5a8f",
        "font-stack--monospace": "ui-monospace, Menlo, Consolas, monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc0ee",
        "color-brand-content": "#7cc0ee",
    },
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
