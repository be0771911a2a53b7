"""How Sphinx builds the documentation: `scripts/docs`, or `python -m sphinx -W docs build/docs`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import klr_bench  # noqa: E402

project = "klr-bench"
author = "The klr-bench developers"
copyright = author
version = release = klr_bench.__version__

extensions = [
    "code_links",
    "contents",
    "mathml",
    "papers",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "plain_docstrings",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["examples", "_ext", "_templates", "papers/generated/_*"]
templates_path = ["_templates"]
nitpicky = True
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "klr-bench"
html_static_path = ["_static", "../klr_bench/report/page/assets/verdicts.css"]
html_css_files = ["verdicts.css", "docs.css"]
html_logo = html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
REPOSITORY = (
    tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {}).get("Repository")
)
html_context = {"default_mode": "auto", "repository": REPOSITORY}
html_sidebars = {page: [] for page in ("index", "get_started", "results", "cheat_sheet")}
html_theme_options = {
    "logo": {"text": "klr-bench"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": {"**": ["page-toc", "edit_page"], "index": []},
    "icon_links": [{"name": "Repository", "url": REPOSITORY, "icon": "fa-solid fa-code-branch"}] if REPOSITORY else [],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}

toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autosummary_generate = True
autosummary_context = {
    "method_order": [
        "fit",
        "partial_fit",
        "partial_fit_scores",
        "predict",
        "predict_proba",
        "decision_function",
        "score",
        "last_classifier",
    ],
    # What an experiment asks an estimator, klr_bench.protocols, and scikit-learn's own
    "hidden_methods": [
        "__init__",
        "adopt",
        "ended_at",
        "fit_together",
        "for_rows",
        "get_metadata_routing",
        "get_params",
        "pass_key",
        "prepare",
        "progress",
        "rehearse",
        "selected_features",
        "set_fit_request",
        "set_output",
        "set_params",
        "set_partial_fit_request",
        "set_score_request",
        "solve",
        "stand_in",
        "steps",
        "summary",
    ],
}
numpydoc_show_class_members = False
smartquotes = False  # l'(y, f) and "rbf" stand for themselves

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "thumbnail_size": (600, 420),
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "abort_on_example_error": True,
}
