"""Values as columns: JSON and Avro, and what is done with values that are neither."""
