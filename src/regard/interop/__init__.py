"""Models trained elsewhere, read; models trained here, written for other engines, with parity checks."""
