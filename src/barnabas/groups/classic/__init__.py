"""The classic group protocol: members join, a leader assigns, everybody syncs."""
