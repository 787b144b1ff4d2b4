"""The document -> terminal, HTML, Markdown."""
