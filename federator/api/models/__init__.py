"""Request and response models of the API, one module per noun. Times are ISO 8601 in UTC."""
