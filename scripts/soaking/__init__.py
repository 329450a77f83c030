"""The parts of scripts/soak.py, one module for each kind of trouble; tests use them with smaller counts."""
