"""Tables that DataFrames are written into: Delta, Iceberg, Parquet; every batch is there whole, once."""
