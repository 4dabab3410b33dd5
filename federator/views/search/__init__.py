"""Full-text search over tables."""
