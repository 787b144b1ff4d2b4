"""Classes -> laws."""
