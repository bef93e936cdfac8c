# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

project = 'compute_notify'
copyright = 'the compute_notify developers'
extensions = ['openstackdocstheme', 'oslo_config.sphinxext']
html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_repo_name = 'compute_notify'
openstackdocs_pdf_link = False
root_doc = 'index'
