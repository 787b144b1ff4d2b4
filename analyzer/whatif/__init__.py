"""What would the run gain from a fix: the dependency graph, its replay, and the named edits."""
