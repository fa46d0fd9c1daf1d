"""Tables in Parquet files."""
