"""Runtime containers: what runs on a device."""
