"""The classic group protocol: members join, their leader assigns the partitions, all fetch their part."""
