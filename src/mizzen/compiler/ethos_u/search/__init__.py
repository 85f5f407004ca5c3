"""Look for the schedule of a sequence that costs least."""
