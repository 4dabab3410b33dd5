"""The Spark jobs. Only this package imports pyspark, and only in modules that start a job."""
