"""TFLite files: built, cut up, and read for their NPU operators."""
