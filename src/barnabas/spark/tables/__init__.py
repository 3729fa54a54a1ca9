"""Tables for DataFrames: Delta, Iceberg and Parquet. Every batch is written completely and once."""
