"""NPU targets: each folder compiles for and simulates one family."""
