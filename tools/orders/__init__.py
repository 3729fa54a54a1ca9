"""The main job: a shop's orders through a broker and a pipeline on Spark, and the proof that all arrived."""
