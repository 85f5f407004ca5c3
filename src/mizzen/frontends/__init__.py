"""What users bring, read into typed data: one package for each format."""
