"""Real servers on this machine for tests, examples and benchmarks: S3, GCS, HDFS, Spark, and proxies that do wrong.

Nothing here imports pytest but `servers.fixtures`.
"""
