"""The document and the measurements -> other people's tools, and their tools -> traces for ours."""
