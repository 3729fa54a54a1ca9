"""Cluster metadata: records, the image they build, the controller that writes them, and the store."""
