"""The Spark jobs: the only place that imports pyspark, and then only in the modules that start a job."""
