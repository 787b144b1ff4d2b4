"""Files -> one columnar Trace per rank."""
